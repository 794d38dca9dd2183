// hone's words for the PJRT C API against the header of OpenXLA: sizes, offsets, places in the table.
#include "pjrt_c_api.h"
#include "platforms/xla/pjrt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void functions_stand_where_the_header_has_them(void **state)
{
    (void)state;
#define SLOT(slot, name)                                                                                               \
    assert_int_equal(offsetof(pjrt_api, functions) + (size_t)(slot) * sizeof(void *), offsetof(PJRT_Api, PJRT_##name))
    SLOT(PJRT_ERROR_DESTROY, Error_Destroy);
    SLOT(PJRT_ERROR_MESSAGE, Error_Message);
    SLOT(PJRT_ERROR_CODE, Error_GetCode);
    SLOT(PJRT_PLUGIN_INITIALIZE, Plugin_Initialize);
    SLOT(PJRT_PLUGIN_ATTRIBUTES, Plugin_Attributes);
    SLOT(PJRT_EVENT_DESTROY, Event_Destroy);
    SLOT(PJRT_EVENT_AWAIT, Event_Await);
    SLOT(PJRT_CLIENT_CREATE, Client_Create);
    SLOT(PJRT_CLIENT_DESTROY, Client_Destroy);
    SLOT(PJRT_CLIENT_PLATFORM_NAME, Client_PlatformName);
    SLOT(PJRT_CLIENT_PLATFORM_VERSION, Client_PlatformVersion);
    SLOT(PJRT_CLIENT_ADDRESSABLE_DEVICES, Client_AddressableDevices);
    SLOT(PJRT_CLIENT_COMPILE, Client_Compile);
    SLOT(PJRT_CLIENT_BUFFER_FROM_HOST, Client_BufferFromHostBuffer);
    SLOT(PJRT_DESCRIPTION_KIND, DeviceDescription_Kind);
    SLOT(PJRT_DEVICE_DESCRIPTION, Device_GetDescription);
    SLOT(PJRT_DEVICE_LOCAL_HARDWARE_ID, Device_LocalHardwareId);
    SLOT(PJRT_EXECUTABLE_DESTROY, Executable_Destroy);
    SLOT(PJRT_EXECUTABLE_OUTPUT_COUNT, Executable_NumOutputs);
    SLOT(PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, Executable_OptimizedProgram);
    SLOT(PJRT_EXECUTABLE_SERIALIZE, Executable_Serialize);
    SLOT(PJRT_LOADED_DESTROY, LoadedExecutable_Destroy);
    SLOT(PJRT_LOADED_EXECUTABLE, LoadedExecutable_GetExecutable);
    SLOT(PJRT_LOADED_EXECUTE, LoadedExecutable_Execute);
    SLOT(PJRT_DESERIALIZE_AND_LOAD, Executable_DeserializeAndLoad);
    SLOT(PJRT_BUFFER_DESTROY, Buffer_Destroy);
    SLOT(PJRT_BUFFER_DEVICE_POINTER, Buffer_OpaqueDeviceMemoryDataPointer);
    SLOT(PJRT_EXECUTABLE_OUTPUT_TYPES, Executable_OutputElementTypes);
    SLOT(PJRT_EXECUTABLE_OUTPUT_DIMENSIONS, Executable_OutputDimensions);
    SLOT(PJRT_CLIENT_VIEW_OF_DEVICE_BUFFER, Client_CreateViewOfDeviceBuffer);
}

static void structs_have_the_fields_of_the_header(void **state)
{
    (void)state;
#define FIELD(type, field, of, name) assert_int_equal(offsetof(type, field), offsetof(of, name))
    FIELD(pjrt_api, version.major, PJRT_Api, pjrt_api_version.major_version);
    FIELD(pjrt_api, version.minor, PJRT_Api, pjrt_api_version.minor_version);
    FIELD(pjrt_error_message, size, PJRT_Error_Message_Args, message_size);
    FIELD(pjrt_error_code, code, PJRT_Error_GetCode_Args, code);
    FIELD(pjrt_named_value, type, PJRT_NamedValue, type);
    FIELD(pjrt_named_value, value, PJRT_NamedValue, int64_value);
    FIELD(pjrt_named_value, value_size, PJRT_NamedValue, value_size);
    FIELD(pjrt_attributes, count, PJRT_Plugin_Attributes_Args, num_attributes);
    FIELD(pjrt_client_create, client, PJRT_Client_Create_Args, client);
    FIELD(pjrt_addressable_devices, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
    FIELD(pjrt_program, format, PJRT_Program, format);
    FIELD(pjrt_compile, options, PJRT_Client_Compile_Args, compile_options);
    FIELD(pjrt_compile, loaded, PJRT_Client_Compile_Args, executable);
    FIELD(pjrt_buffer_from_host, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
    FIELD(pjrt_buffer_from_host, done, PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer);
    FIELD(pjrt_buffer_from_host, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
    FIELD(pjrt_view, on_delete, PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback);
    FIELD(pjrt_view, buffer, PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer);
    FIELD(pjrt_execute_options, kept_arguments, PJRT_ExecuteOptions, non_donatable_input_indices);
    FIELD(pjrt_execute_options, incarnation_ids, PJRT_ExecuteOptions, incarnation_ids);
    FIELD(pjrt_execute, output_lists, PJRT_LoadedExecutable_Execute_Args, output_lists);
    FIELD(pjrt_execute, device, PJRT_LoadedExecutable_Execute_Args, execute_device);
    FIELD(pjrt_output_types, count, PJRT_Executable_OutputElementTypes_Args, num_output_types);
    FIELD(pjrt_output_dimensions, ranks, PJRT_Executable_OutputDimensions_Args, dim_sizes);
    FIELD(pjrt_serialize, free_owner, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
    FIELD(pjrt_deserialize, loaded, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
    FIELD(pjrt_get, value, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr);
    FIELD(pjrt_get, value, PJRT_LoadedExecutable_GetExecutable_Args, executable);
    FIELD(pjrt_get, value, PJRT_Executable_OptimizedProgram_Args, program);
    FIELD(pjrt_get_text, size, PJRT_Client_PlatformName_Args, platform_name_size);
    FIELD(pjrt_get_int, value, PJRT_Device_LocalHardwareId_Args, local_hardware_id);
}

static void structs_are_as_large_as_those_of_the_header(void **state)
{
    (void)state;
    assert_true(sizeof(pjrt_client_create) >= PJRT_Client_Create_Args_STRUCT_SIZE);
    assert_true(sizeof(pjrt_compile) >= PJRT_Client_Compile_Args_STRUCT_SIZE);
    assert_true(sizeof(pjrt_buffer_from_host) >= PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE);
    assert_true(sizeof(pjrt_view) >= PJRT_Client_CreateViewOfDeviceBuffer_Args_STRUCT_SIZE);
    assert_true(sizeof(pjrt_execute_options) >= PJRT_ExecuteOptions_STRUCT_SIZE);
    assert_true(sizeof(pjrt_execute) >= PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE);
    assert_true(sizeof(pjrt_deserialize) >= PJRT_Executable_DeserializeAndLoad_Args_STRUCT_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_stand_where_the_header_has_them),
        cmocka_unit_test(structs_have_the_fields_of_the_header),
        cmocka_unit_test(structs_are_as_large_as_those_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
