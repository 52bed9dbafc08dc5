import { expect, test } from 'vitest'
import { readRefer } from '../../../../engine/call/transfer/refer.ts'

const read = (referTo: string, more: Record<string, string> = {}) =>
  readRefer({ 'refer-to': referTo, cseq: '7 REFER', ...more })

test.each([
  ['<sip:102@Acme.example:5070;transport=udp>', '102', 'acme.example'],
  ['"Bob" <sip:102@acme.example>;x=y', '102', 'acme.example'],
  ['sip:102@acme.example', '102', 'acme.example'],
  ['<sips:%2B4930@h>', '+4930', 'h'],
  ['<tel:+49-30-1>', '+49301', ''],
  ['<sip:1-900.(555)%201@h;user=phone>', '19005551', 'h'],
  ['<sip:102@h;method=INVITE>', '102', 'h'],
])('%s asks for %s', (referTo, number, domain) => {
  expect(read(referTo)).toMatchObject({
    kind: 'refer',
    replaces: undefined,
    isSilent: false,
    id: '7',
    target: { number, domain },
  })
})

test('an embedded Replaces is unescaped', () => {
  const referTo = '<sip:c@h?Require=replaces&Replaces=a%40b%3Bto-tag%3D1%3Bfrom-tag%3D2>'
  expect(read(referTo)).toMatchObject({
    replaces: { callId: 'a@b', toTag: '1', fromTag: '2', isEarlyOnly: false },
  })
})

test.each([
  ['', 400],
  ['<>', 400],
  ['<102>', 400],
  ['<sip:1@h>, <sip:2@h>', 400],
  ['sip:1@h, sip:2@h', 400],
  ['<sip:h>', 400],
  ['<sip:1@h?Replaces=%>', 400],
  ['<sip:1@h?Replaces=a>', 400],
  ['<https://h/>', 416],
  ['<sip:1+900@h>', 484],
  ['<sip:(-)@h>', 484],
  ['<tel:1900FLOWERS>', 484],
  ['<sip:alice@h>', 404],
  ['<sip:1@h;method=SUBSCRIBE>', 603],
])('%s is refused with %i', (referTo, status) => {
  expect(read(referTo)).toMatchObject({ kind: 'refused', status })
})

test('Refer-Sub: false asks for no NOTIFY', () => {
  expect(read('<sip:1@h>', { 'refer-sub': 'false' })).toMatchObject({ isSilent: true })
  expect(read('<sip:1@h>', { 'refer-sub': 'true' })).toMatchObject({ isSilent: false })
})
