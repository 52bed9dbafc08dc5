import { expect, test } from 'vitest'
import { visibleLines, visibleText } from '../../../../../control/console/web/parts/visible-text.ts'

test.each([
  ['a bidirectional override', 'ci \u202Egnp.exe', 'ci <U+202E>gnp.exe'],
  ['an isolate', '\u2067abc\u2069', '<U+2067>abc<U+2069>'],
  ['a zero-width space', 'ad\u200Bmin', 'ad<U+200B>min'],
  ['a tag character', 'a\u{E0041}', 'a<U+E0041>'],
  ['a line end and a NUL', 'a\r\nb\0', 'a<U+000D><U+000A>b<U+0000>'],
  ['half of a surrogate pair', 'a\uD800', 'a<U+D800>'],
  ['a letter without a shape', 'a\u3164', 'a<U+3164>'],
  ['markup, which the page escapes', '<b>"&\'', '<b>"&\''],
  ['other scripts', 'Jürgen עברית 😀', 'Jürgen עברית 😀'],
])('%s is seen', (_, text, shown) => {
  expect(visibleText(text)).toBe(shown)
})

test('long text is cut, and so are the lines of a message', () => {
  expect(visibleText('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`)
  expect(visibleText('\u202E'.repeat(1_000), 3)).toBe('<U+202E><U+202E><U+202E>…')
  expect(visibleLines('a\r\nb\u202E\n', 100)).toBe('a\nb<U+202E>\n')
  expect(visibleLines('x'.repeat(100_000), 1_000)).toHaveLength(1_000)
})
