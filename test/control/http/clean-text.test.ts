import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clean, cleanText, describeArguments } from '../../../control/http/clean-text.ts'

const hidden =
  // eslint-disable-next-line no-control-regex -- these are what must be gone
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\u{e0000}-\u{e0fff}\u3164]/u
const token = `sbc_live_${'x'.repeat(64)}`

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 2_000 }),
  fc.string({ unit: fc.constantFrom('\u202e', '\u0007', '\u{e0041}', '\ud800', '😀', 'a') }),
)

test('no text is longer than its bound, or holds what a reader cannot see', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 2, max: 600 }), (text, bound) => {
      const shown = cleanText(text, bound)
      expect(shown.length).toBeLessThanOrEqual(bound)
      expect(hidden.test(shown)).toBe(false)
      expect(cleanText(shown, bound)).toBe(shown)
    }),
    {
      examples: [
        ['\u{e0000}', 2],
        ['a\u3164b\u{e0100}', 20],
      ],
    },
  )
  expect(cleanText('❤️')).toBe('❤️')
})

test('whatever stands around a token, the token does not come through', () => {
  const session = `eyJ${'a'.repeat(30)}.eyJ${'b'.repeat(40)}.${'c'.repeat(43)}`
  fc.assert(
    fc.property(fc.string({ maxLength: 600 }), fc.string({ maxLength: 600 }), (before, after) => {
      expect(cleanText(`${before} ${token} ${after}`)).not.toContain('x'.repeat(20))
      expect(cleanText(`${before} ${session} ${after}`)).not.toContain('b'.repeat(20))
    }),
  )
})

test('a token across the bound is hidden too', () => {
  for (let start = 400; start < 520; start += 1)
    expect(cleanText('-'.repeat(start) + token)).not.toContain('x'.repeat(20))
})

test('every text of a value is cleaned, its keys too, and the value is bounded', () => {
  const value = { 'a\u0000b': ['\u202etxet', { deep: token }], count: 3, nothing: null, yes: true }
  expect(clean(value)).toEqual({
    'a\ufffdb': ['\ufffdtxet', { deep: 'sbc_live_xxx…' }],
    count: 3,
    nothing: null,
    yes: true,
  })
  expect(clean(Array.from({ length: 5_000 }, () => 1))).toHaveLength(1_000)
  const deep: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
  expect(JSON.stringify(clean(deep)).length).toBeLessThan(50)
})

test('arguments for the audit are one bounded line, whatever was sent', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ maxLength: 3_000 }), (value, long) => {
      const line = describeArguments({ value, long, token })
      expect(line.length).toBeLessThanOrEqual(1_000)
      expect(line).not.toContain('x'.repeat(20))
      expect(hidden.test(line)).toBe(false)
    }),
  )
  for (const nothing of [undefined, null, 'text', [1], 3])
    expect(describeArguments(nothing)).toBe('{}')
})
