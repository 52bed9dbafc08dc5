import { expect, test } from 'vitest'
import { compileNumberRules, numberRuleProblem } from '../../schema/number-rule.ts'

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
  ['.*.*.*x', 'more than 2'],
  ['0?0?0?0?0?0?0?0000000', 'more than 6 choices'],
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

test('the slowest rule that is accepted takes no noticeable time on the longest number', () => {
  const rule = { match: '^.*0?0?0?0?0?0?.*x$', replace: '' }
  expect(numberRuleProblem(rule)).toBeUndefined()
  const start = performance.now()
  compileNumberRules([rule])('0'.repeat(64))
  expect(performance.now() - start).toBeLessThan(50)
})

test('a number longer than any telephone number is left as it is', () => {
  expect(compileNumberRules([{ match: '^0', replace: '1' }])('0'.repeat(65))).toBe('0'.repeat(65))
})
