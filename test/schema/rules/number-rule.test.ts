import { expect, test } from 'vitest'
import { compileNumberRules, numberRuleProblem } from '../../../schema/rules/numbers.ts'
import { seededRandom } from '../../support/seeded-random.ts'

test.each([
  ['^00', '+', '00491701234', '+491701234'],
  ['^0([1-9].*)$', '+49$1', '0170123', '+49170123'],
  ['^\\+49(\\d+)$', '0$1', '+49170', '0170'],
  ['^(?:00|\\+)1', '1', '+12125550100', '12125550100'],
  ['[^0-9]', '', '+49', '49'],
  ['^1\\d{9}$', '555', '1234567890', '555'],
])('the rule %s → %s rewrites %s to %s', (match, replace, number, rewritten) => {
  expect(numberRuleProblem({ match, replace })).toBeUndefined()
  expect(compileNumberRules([{ match, replace }])(number)).toBe(rewritten)
})

test('only the first rule that matches is applied', () => {
  const rewrite = compileNumberRules([
    { match: '^00', replace: '+' },
    { match: '^0', replace: '+49' },
    { match: '^\\+', replace: 'x' },
  ])
  expect(rewrite('0044')).toBe('+44')
  expect(rewrite('030')).toBe('+4930')
  expect(rewrite('12')).toBe('12')
})

test.each([
  ['(a+)+$', 'not understood'],
  ['(\\d*)*x', 'not understood'],
  ['((0))', 'group inside a group'],
  ['^(0', 'does not close'],
  ['0)', 'not open'],
  ['.*.*.*x', 'too long'],
  ['^.*.*.*.*x', 'too long'],
  ['\\d*\\d*1?1?1?1?1?1?x', 'too long'],
  ['^0{0,9}0{0,9}0{0,9}0{0,9}0{0,9}', 'too long'],
  ['^0|.*.*0?x', 'too long'],
  ['(?=0)', 'not understood'],
  ['(0)\\1', 'not understood'],
  ['\\w+', 'not understood'],
  ['+49', 'not understood'],
  ['[9-0]', 'not a regular expression'],
  ['a'.repeat(101), 'at most 100'],
  ['', 'empty'],
  ['0\u00001', 'not understood'],
])('a rule that could be slow or ambiguous is refused: %s', (match, problem) => {
  expect(numberRuleProblem({ match, replace: '' })).toContain(problem)
})

test.each([['$2'], ['a b'], ["'; DROP TABLE carrier; --"], ['$&'], ['\r\nX: y']])(
  'a replacement that is not a number is refused: %j',
  (replace) => {
    expect(numberRuleProblem({ match: '^(0)', replace })).toMatch(/^replace/)
  },
)

test('no rule that is accepted takes a millisecond on any number', () => {
  const random = seededRandom(7)
  const pick = (parts: readonly string[]): string =>
    parts[Math.floor(random() * parts.length)] ?? ''
  const anyRule = (): string => {
    let match = pick(['^', ''])
    for (let length = 1 + random() * 9; length > 0; length -= 1)
      match += pick(['\\d', '.', '1', '[0-9]']) + pick(['', '*', '+', '?', '{0,9}', '{2,}'])
    return match + pick(['x', 'x$', '|1x'])
  }
  const numbers = ['1'.repeat(64), '10'.repeat(32)]
  let accepted = 0
  for (let tries = 0; tries < 5_000; tries += 1) {
    const match = anyRule()
    if (numberRuleProblem({ match, replace: '' }) !== undefined) continue
    accepted += 1
    const rewrite = compileNumberRules([{ match, replace: '' }])
    for (const number of numbers)
      expect([match, quickest(() => rewrite(number)) < 1]).toEqual([match, true])
  }
  expect(accepted).toBeGreaterThan(500)
})

/** Milliseconds of the best of some runs: the machine may be doing other things meanwhile. */
function quickest(work: () => void): number {
  let best = Infinity
  for (let run = 0; run < 20 && best >= 1; run++) {
    const start = performance.now()
    work()
    best = Math.min(best, performance.now() - start)
  }
  return best
}
