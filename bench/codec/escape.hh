// escape.hh - escapes the inside of JSON strings, 32 bytes at a time where the compiler may use AVX2.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __AVX2__
#include <immintrin.h>
#endif

inline bool escape_needed(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\';
}

#ifdef __AVX2__
// One bit for each of 32 bytes that has to be escaped.
inline uint32_t escape_mask(const char *at)
{
	__m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at));
	__m256i control = _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8(0x20)),
					    _mm256_set1_epi8(0x20));
	__m256i space = _mm256_cmpeq_epi8(v, _mm256_set1_epi8(0x20));
	__m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
	__m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
	__m256i bad =
		_mm256_or_si256(_mm256_andnot_si256(space, control), _mm256_or_si256(quote, slash));
	return uint32_t(_mm256_movemask_epi8(bad));
}
#endif

// How many bytes at the front need no escape.
inline size_t escape_clean(std::string_view text)
{
	size_t i = 0;
#ifdef __AVX2__
	for (; i + 32 <= text.size(); i += 32) {
		uint32_t mask = escape_mask(text.data() + i);
		if (mask != 0)
			return i + size_t(__builtin_ctz(mask));
	}
#endif
	while (i < text.size() && !escape_needed(static_cast<unsigned char>(text[i])))
		i++;
	return i;
}

// The most that escape_put writes for so many bytes, and what it may write beyond its end.
inline size_t escape_room(size_t size)
{
	return 6 * size + 32;
}

inline char *escape_one(char *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef", shorts[] = "btn\0fr";
	*out++ = '\\';
	if (c == '"' || c == '\\') {
		*out++ = char(c);
	} else if (c >= 8 && c <= 13 && c != 11) {
		*out++ = shorts[c - 8];
	} else {
		memcpy(out, "u00", 3);
		out[3] = hex[c >> 4];
		out[4] = hex[c & 15];
		out += 5;
	}
	return out;
}

// Returns the end of what was written.
inline char *escape_put(char *out, std::string_view text)
{
	while (!text.empty()) {
		size_t clean;
#ifdef __AVX2__
		if (text.size() >= 32) {
			uint32_t mask = escape_mask(text.data());
			memcpy(out, text.data(), 32);
			clean = mask == 0 ? 32 : size_t(__builtin_ctz(mask));
			out += clean;
			text.remove_prefix(clean);
			if (mask == 0)
				continue;
			out = escape_one(out, static_cast<unsigned char>(text.front()));
			text.remove_prefix(1);
			continue;
		}
#endif
		clean = escape_clean(text);
		memcpy(out, text.data(), clean);
		out += clean;
		text.remove_prefix(clean);
		if (!text.empty()) {
			out = escape_one(out, static_cast<unsigned char>(text.front()));
			text.remove_prefix(1);
		}
	}
	return out;
}
