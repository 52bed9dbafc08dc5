import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyHeaderRules } from '../../../engine/call/header-rules.ts'
import { readAddress, readUri } from '../../../schema/sip/index.ts'
import type { Headers } from '../../../engine/call/signalling.ts'
import {
  compileHeaderRules,
  type HeaderRule,
  headerRuleProblem,
  maxHeaderRules,
  maxPatternSteps,
  patternSteps,
  ruleActions,
  ruleParts,
} from '../../../schema/rules/header-rules.ts'
import { maxMatchedLength } from '../../../schema/rules/bounded-pattern.ts'

const facts = {
  callUuid: 'uuid',
  caller: '+49\r\nX-Evil: 1',
  called: '112',
  carrier: 'no"rth, <x>',
  customerId: 7,
  tags: { one: 'a\u2028b' },
}

const apply = (rules: readonly HeaderRule[], headers: Headers, uri = 'sip:+4940200@192.0.2.1') => {
  const compiled = compileHeaderRules(rules)
  if (typeof compiled === 'string') throw new Error(compiled)
  const [direction] = rules.map((rule) => rule.direction)
  return applyHeaderRules(compiled[direction ?? 'out'] ?? [], { uri, headers }, facts)
}

const rule = (parts: Partial<HeaderRule>): HeaderRule => ({
  direction: 'out',
  do: 'set',
  header: 'From',
  part: 'value',
  ...parts,
})

const owned: Headers = {
  identity: 'signed',
  date: 'now',
  via: 'v',
  'call-id': 'c',
  contact: '<sip:us>',
  'Max-Forwards': '69',
  'content-type': 'application/sdp',
}
const texts = fc.constantFrom(
  ...[
    'x',
    'a\r\nX-Evil: 1',
    '"',
    '<sip:+1666@evil>',
    ';verstat=TN-Validation-Passed',
    ', ',
    '%0d%0a',
  ],
  ...['{caller}', '{presented}', '{tag.one}', '{header.subject}', '{header.x-a}', '{carrier}', ''],
)
const names = fc.constantFrom(
  ...['From', 'To', 'Request-URI', 'P-Asserted-Identity', 'Remote-Party-ID', 'X-A', 'Subject'],
  ...['Identity', 'Date', 'Via', 'Contact', 'Call-ID', 'Max-Forwards', 'Content-Type', 'Diversion'],
)
const anyRule: fc.Arbitrary<HeaderRule> = fc
  .record({
    do: fc.constantFrom(...ruleActions),
    header: names,
    part: fc.constantFrom(...ruleParts),
    parameter: fc.constantFrom(undefined, 'user', 'x', 'tag', 'transport'),
    value: fc.oneof(
      fc.constant(undefined),
      fc.array(texts, { maxLength: 3 }).map((each) => each.join('')),
    ),
    source: fc.option(names, { nil: undefined }),
    pattern: fc.constantFrom(undefined, '^(.*)$', '[0-9]+', 'sip:'),
    replacement: fc.constantFrom(undefined, '$1$1', '\r\nX-Evil: 1', '', 'tel:'),
  })
  .map(({ value, source, pattern, replacement, parameter, ...parts }) => ({
    ...{ direction: 'out' as const, ...parts },
    ...(/parameter/.test(parts.part) && { parameter }),
    ...(/set|add/.test(parts.do) && { value }),
    ...(parts.do === 'copy' && { source }),
    ...(parts.do === 'rewrite' && { pattern, replacement }),
  }))
const values = fc.constantFrom(
  ...['"A, \\"B" <sip:+4930100@h;x=1>;p="q;r"', '<tel:+4930100>, <sip:100@h>', 'sip:100@h;tag=1'],
  ...['<sip:anonymous@anonymous.invalid>', 'text', 'a\\', '<sip:%0d%0aX-Evil@h>', ''],
)
const anyHeaders = fc
  .dictionary(
    fc.constantFrom('From', 'To', 'p-asserted-identity', 'x-a', 'subject', 'diversion'),
    values,
  )
  .map((given): Headers => ({
    From: '<sip:+4930100@h>',
    To: '<sip:+4940200@h>',
    ...given,
    ...owned,
  }))

test('no rule that may be written begins a header, writes what is ours, or calls another number', () => {
  let applied = 0
  fc.assert(
    fc.property(fc.array(anyRule, { maxLength: 8 }), anyHeaders, (given, headers) => {
      const rules = given.filter((each) => headerRuleProblem(each) === undefined)
      const before = { ...headers }
      const { uri, headers: after, ruledBy } = apply(rules, headers)
      applied += ruledBy.length
      expect(headers).toEqual(before)
      expect(uri).toMatch(/^sip:\+4940200@192\.0\.2\.1(?:;[^\s<>"]*)?$/)
      for (const [name, value] of Object.entries(after))
        if (value !== before[name])
          expect([name, value]).toEqual([name, value.replace(/\p{Cc}/gu, '')])
      for (const [name, value] of Object.entries(owned)) expect(after[name]).toBe(value)
      const numberOf = (to = '') => readUri(readAddress(to).uri).user
      expect(numberOf(after['To'])).toBe(numberOf(before['To']))
    }),
    { numRuns: 3_000 },
  )
  expect(applied).toBeGreaterThan(200)
})

test.each<[string, Partial<HeaderRule>, string, string]>([
  ['a user is escaped', { part: 'user', value: 'a;b@c' }, '<sip:1@h>', '<sip:a%3Bb%40c@h>'],
  [
    'what was said about a number goes with it',
    { part: 'user', value: '2' },
    '<sip:1;verstat=TN-Validation-Passed@h>',
    '<sip:2@h>',
  ],
  [
    'a name is quoted',
    { part: 'display_name', value: 'a "b"' },
    '<sip:1@h>',
    '"a \\"b\\"" <sip:1@h>',
  ],
  [
    'a host may have a port',
    { part: 'host', value: '[2001:db8::1]:5080' },
    '<sip:1@h>',
    '<sip:1@[2001:db8::1]:5080>',
  ],
  ['a tel URI has no host', { part: 'host', value: 'x' }, '<tel:+49>', '<tel:+49>'],
  [
    'a parameter is replaced where it stands',
    { part: 'uri_parameter', parameter: 'USER', value: 'ip' },
    '<sip:1@h;user=phone;x>',
    '<sip:1@h;USER=ip;x>',
  ],
  [
    'a parameter may have no value',
    { part: 'uri_parameter', parameter: 'npdi' },
    '<sip:1@h>',
    '<sip:1@h;npdi>',
  ],
  [
    'a parameter is removed',
    { do: 'remove', part: 'uri_parameter', parameter: 'user' },
    '<sip:1@h;user=phone>;p=q',
    '<sip:1@h>;p=q',
  ],
  [
    'a number is written in another form',
    { do: 'rewrite', part: 'user', pattern: '^\\+', replacement: '00' },
    '<sip:+49@h>',
    '<sip:0049@h>',
  ],
])('%s', (_, parts, before, after) => {
  expect(apply([rule(parts)], { From: before }).headers['From']).toBe(after)
})

test('all rules that a carrier may have take little time, on the longest values', () => {
  const slow = rule({
    ...{ do: 'rewrite', header: 'X-A', part: 'value' },
    ...{ pattern: '.*.*.*.*.*.*.*.*x', replacement: '' },
  })
  const many = Array.from({ length: maxHeaderRules }, () => slow)
  const rules = many.filter((_, index) => patternSteps(many.slice(0, index + 1)) <= maxPatternSteps)
  const headers = { 'X-A': 'a'.repeat(maxMatchedLength) }
  apply(rules, headers)
  const before = process.cpuUsage()
  apply(rules, headers)
  // Microseconds; 15,000 on a machine of its own.
  expect(process.cpuUsage(before).user).toBeLessThan(100_000)
})
