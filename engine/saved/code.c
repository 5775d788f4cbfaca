/* Codes, written and read. See code.h. */
#include "code.h"

#include "chunk.h"

/* ---- Writing ---------------------------------------------------------------------------------------------------------------------- */

void ivm__code_raw(ivm__code *code, const void *bytes, size_t size)
{
    uint64_t needed = (uint64_t)code->size + size;
    if (code->failed || needed > UINT32_MAX ||
        ivm__grow(code->memory, (void **)&code->bytes, &code->capacity, needed, sizeof *code->bytes) != IVM_OK) {
        code->failed = true;
        return;
    }
    if (size) {
        memcpy(code->bytes + code->size, bytes, size);
    }
    code->size += (uint32_t)size;
}

void ivm__code_number(ivm__code *code, uint64_t value, uint32_t bytes)
{
    uint8_t written[8];
    for (uint32_t i = 0; i < bytes; i++) {
        written[i] = (uint8_t)(value >> 8 * i);
    }
    ivm__code_raw(code, written, bytes);
}

void ivm__code_bytes(ivm__code *code, const void *bytes, size_t size)
{
    code->failed |= size > UINT32_MAX;
    ivm__code_number(code, size, 4);
    ivm__code_raw(code, bytes, size);
}

void ivm__code_text(ivm__code *code, const char *text)
{
    size_t size = strlen(text);
    ivm__code_number(code, size, 4);
    ivm__code_raw(code, text, size + 1);
}

void ivm__code_deinit(ivm__code *code)
{
    ivm__release(code->memory, code->bytes, code->capacity);
    *code = (ivm__code){ .memory = code->memory };
}

uint8_t *ivm__code_take(ivm__code *code, uint32_t *size)
{
    uint8_t *taken = code->failed ? NULL : ivm__resize(code->memory, code->bytes, code->capacity, code->size);
    if (!taken) {
        return NULL;
    }
    *size = code->size;
    *code = (ivm__code){ .memory = code->memory };
    return taken;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------------------------- */

const uint8_t *ivm__decode_raw(ivm__decode *decode, size_t size)
{
    if (decode->failed || size > decode->left) {
        decode->failed = true;
        return NULL;
    }
    const uint8_t *at = decode->at;
    decode->at += size;
    decode->left -= size;
    return at;
}

uint64_t ivm__decode_number(ivm__decode *decode, uint32_t bytes)
{
    const uint8_t *at = ivm__decode_raw(decode, bytes);
    uint64_t value = 0;
    for (uint32_t i = 0; at && i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

uint64_t ivm__decode_below(ivm__decode *decode, uint32_t bytes, uint64_t limit)
{
    uint64_t value = ivm__decode_number(decode, bytes);
    if (value >= limit) {
        decode->failed = true;
        return 0;
    }
    return value;
}

uint32_t ivm__decode_count(ivm__decode *decode, size_t least)
{
    uint64_t count = ivm__decode_number(decode, 4);
    if (count > decode->left / least) {
        decode->failed = true;
        return 0;
    }
    return (uint32_t)count;
}

const uint8_t *ivm__decode_bytes(ivm__decode *decode, size_t *size)
{
    *size = ivm__decode_number(decode, 4);
    return ivm__decode_raw(decode, *size);
}

const char *ivm__decode_text(ivm__decode *decode)
{
    size_t size = ivm__decode_number(decode, 4);
    const char *text = (const char *)ivm__decode_raw(decode, size + 1);
    if (text && memchr(text, 0, size + 1) != text + size) {
        decode->failed = true;
        return NULL;
    }
    return text;
}

ivm_type ivm__decode_type(ivm__decode *decode)
{
    ivm_type type = (ivm_type)ivm__decode_number(decode, 4);
    if (!ivm__type_is_valid(type)) {
        decode->failed = true;
        return 0;
    }
    return type;
}
