import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type BoundedPattern,
  compilePattern,
  maxMatchedLength,
  replaceMatch,
  replacementProblem,
} from '../../../schema/rules/bounded-pattern.ts'

function patternOf(source: string): BoundedPattern {
  const compiled = compilePattern(source)
  if (typeof compiled === 'string') throw new Error(compiled)
  return compiled
}

test.each([
  ['^\\+49(\\d+)$', '+4930100', '0$1', '030100'],
  ['^00', '004930', '+', '+4930'],
  ['sip:([^@]+)@(.*)$', 'sip:100@a.example', '$2/$1', 'a.example/100'],
  ['(a|bc)+d', 'xabcad!', '[$1]', 'x[a]!'],
  ['(\\d{3})(\\d{4})?', '5551234', '$1-$2', '555-1234'],
  ['a.*?b', 'aXbYb', '', 'Yb'],
  ['[^;]*;', 'one;two;', '$0$0', 'one;one;two;'],
  ['none', 'some', 'x', 'some'],
])('%s replaces in %s', (source, text, replacement, expected) => {
  expect(replaceMatch(patternOf(source), text, replacement)).toBe(expected)
})

const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\w', '1', 'c')
const counted = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,3}', '*?', '+?', '{2,}')
const item = fc.tuple(atom, counted).map((parts) => parts.join(''))
const sequence = fc.array(item, { minLength: 1, maxLength: 4 }).map((items) => items.join(''))
const plainGroup = fc
  .tuple(
    fc.constantFrom('(', '(?:'),
    fc.array(fc.array(atom, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
    counted,
  )
  .map(([open, ways, times]) => `${open}${ways.map((way) => way.join('')).join('|')})${times}`)
const anyPattern = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.array(
      fc.oneof(
        sequence,
        plainGroup,
        sequence.map((of) => `(${of})`),
      ),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
    fc.constantFrom('', '$', '|ab'),
  )
  .map(([start, parts, end]) => start + parts.join('') + end)

test('a pattern means what it means in JavaScript', () => {
  const texts = fc.array(fc.constantFrom('a', 'b', 'c', '1', '2'), { maxLength: 12 })
  fc.assert(
    fc.property(anyPattern, texts, (source, characters) => {
      const text = characters.join('')
      const found = patternOf(source).find(text)
      const expected = new RegExp(source).exec(text)
      expect(found?.groups).toEqual(expected === null ? undefined : [...expected])
      expect(found?.start).toBe(expected?.index)
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['', 'pattern is empty'],
  ['(a)\\1', 'pattern has \\1, which is not understood, at position 5'],
  ['(?=a)', 'pattern looks ahead, looks behind, or names a group, at position 1'],
  ['(?<n>a)', 'pattern looks ahead, looks behind, or names a group, at position 1'],
  ['(a+)+', 'pattern repeats a group that has a group, a repetition, ^ or $ inside, at position 5'],
  [
    '((a))*',
    'pattern repeats a group that has a group, a repetition, ^ or $ inside, at position 6',
  ],
  ['a||b', 'pattern has an alternative without characters, at position 2'],
  ['a)', 'pattern closes a group that is not open, at position 1'],
  ['(a', 'pattern does not close its group, at position 2'],
  ['[a', 'pattern does not close its [, at position 2'],
  ['[z-a]', 'pattern has a range in [ ] that ends before it begins, at position 4'],
  ['*a', 'pattern has * without a character before, at position 1'],
  ['a{3,2}', 'pattern has a repetition that ends before it begins, at position 6'],
  ['a{65}', 'pattern repeats more than 64 times, at position 5'],
  [
    '[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}',
    'pattern is too large: count fewer repetitions',
  ],
  ['a'.repeat(129), 'pattern has more than 128 characters'],
])('%s is refused', (source, problem) => {
  expect(compilePattern(source)).toBe(problem)
})

test('a replacement names groups of its pattern only', () => {
  expect(replacementProblem('$0$1', 1)).toBeUndefined()
  expect(replacementProblem('$2', 1)).toBe('replacement refers to $2, the pattern has 1 groups')
})

test('no pattern takes long on any text', () => {
  const slow = [
    '.*.*.*.*.*.*.*.*x',
    '(a|a)*(a|a)*(a|a)*b$',
    'a*a*a*a*a*a*a*a*a*a*b',
    '.{0,64}.{0,64}.{0,64}x',
  ]
  for (const source of slow) {
    const pattern = patternOf(source)
    const text = 'a'.repeat(maxMatchedLength)
    pattern.find(text)
    const before = performance.now()
    expect(pattern.find(text)).toBeUndefined()
    expect(performance.now() - before).toBeLessThan(50)
  }
  expect(patternOf('a').find('a'.repeat(maxMatchedLength + 1))).toBeUndefined()
})
