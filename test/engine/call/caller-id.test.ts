import fc from 'fast-check'
import { expect, test } from 'vitest'
import { calledOf, callerOf, partyOf } from '../../../engine/call/sip-headers.ts'
import { escapeUser, formatNameAddr } from '../../../schema/sip/index.ts'

test.each([
  ['<sip:1555@10.0.0.1>;tag=a', '', '1555', '10.0.0.1'],
  ['sip:1555@10.0.0.1:5070;tag=a', '', '1555', '10.0.0.1:5070'],
  ['"Alice" <sip:alice@example.com>;tag=a', 'Alice', 'alice', 'example.com'],
  ['Alice B <sips:alice@example.com>', 'Alice B', 'alice', 'example.com'],
  ['"A, \\"B\\" <sip:x@y>" <sip:1@z>', 'A, "B" <sip:x@y>', '1', 'z'],
  ['<sip:1555;isub=7:secret@host>', '', '1555', 'host'],
  ['<sip:%2B1555%23@host;user=phone>', '', '+1555#', 'host'],
  ['<tel:+1-800-(555).12;phone-context=x>', '', '+180055512', ''],
  ['"N" <sip:1@a>, "M" <sip:2@b>', 'N', '1', 'a'],
  ['<sip:10.0.0.1>', '', '', '10.0.0.1'],
  ['<sip:[2001:db8::1]:5060>', '', '', '[2001:db8::1]:5060'],
  ['<mailto:a@b>', '', '', ''],
  ['<sip:100%@host>', '', '100%', 'host'],
  ['"open <sip:1@a>', '', '1', 'a'],
  ['', '', '', ''],
])('%s is %s calling from %s at %s', (value, name, number, host) => {
  expect(partyOf(value)).toMatchObject({ name, number, host })
})

test('the asserted identity is the caller; the name of From fills its gap', () => {
  const from = partyOf('"Front" <sip:100@inner>;tag=1')
  expect(callerOf('<sip:+1555@net>', from)).toMatchObject({ number: '+1555', name: 'Front' })
  expect(callerOf('"Net" <tel:+1555>', from)).toMatchObject({ number: '+1555', name: 'Net' })
  expect(callerOf('<sip:net>', from)).toMatchObject({ number: '100' })
  expect(callerOf(undefined, from)).toMatchObject({ number: '100' })
})

test('the Request-URI names the called number, and keeps its escapes for the next hop', () => {
  expect(calledOf('sip:%23100@host:5060;transport=tcp?x=y')).toMatchObject({
    number: '#100',
    user: '%23100',
    host: 'host:5060',
  })
  expect(calledOf('tel:+1555;ext=2').number).toBe('+1555')
})

test.each([
  ['sip:1-900-555.1234@host', '19005551234'],
  ['sip:1(900)%205551234@host', '19005551234'],
  ['sips:+1-900@host', '+1900'],
  ['sip:%2B1-900;phone-context=+44:secret@host;user=phone', '+1900'],
  ['tel:+1-(900).555', '+1900555'],
  ['sip:%23-31@host', '#31'],
])('%s calls %s, and is sent on as that', (uri, number) => {
  const called = calledOf(uri)
  expect(called).toMatchObject({ number, user: escapeUser(number) })
  expect(called.irregular).toBeUndefined()
})

test.each([
  ['sip:alice@host', 'name'],
  ['sip:1900FLOWERS@host', 'name'],
  ['sip:1900FLOWERS@host;user=phone', 'malformed'],
  ['sip:1900FLOWERS@host;USER=PHONE;x', 'malformed'],
  ['sip:1900FLOWERS@host;user=phones', 'name'],
  ['tel:1900FLOWERS', 'malformed'],
  ['sip:1900%2B1@host', 'malformed'],
  ['sip:(-)@host', 'malformed'],
  ['sip:;isub=1@host', 'malformed'],
])('%s calls no number (%s)', (uri, irregular) => {
  expect(calledOf(uri).irregular).toBe(irregular)
})

test('control characters reach neither a name nor a number', () => {
  const party = partyOf('"a\r\n b" <sip:1%0d%0a2@host>')
  expect(party.name).toBe('a  b')
  expect(party.number).toBe('1 2')
})

test('whatever a header holds, reading it neither throws nor yields something unbounded', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 2_000 }), (value) => {
      const party = partyOf(value)
      expect(party.name.length).toBeLessThanOrEqual(128)
      expect(party.number.length).toBeLessThanOrEqual(64)
      expect(formatNameAddr(party.name, `sip:${escapeUser(party.number)}@h`)).not.toMatch(/[\r\n]/)
    }),
  )
})
