import { expect, test } from 'vitest'
import { contactsOf, isSameUri } from '../../../engine/registrar/contact.ts'

// RFC 3261 §19.1.4, its own examples where they fit a Contact.
test.each([
  ['sip:alice@AtLanTa.CoM;Transport=udp', 'sip:alice@atlanta.com;transport=UDP', true],
  ['sip:carol@chicago.com', 'sip:carol@chicago.com;newparam=5', true],
  ['sip:carol@chicago.com;newparam=5', 'sip:carol@chicago.com;security=on', true],
  ['sip:bob@biloxi.com', 'sip:bob@biloxi.com:5060', false],
  ['sip:bob@biloxi.com', 'sip:bob@biloxi.com;transport=udp', false],
  ['sip:bob@biloxi.com', 'sip:BOB@biloxi.com', false],
  ['sip:bob@biloxi.com;line=1', 'sip:bob@biloxi.com;line=2', false],
  ['sip:bob@biloxi.com', 'sips:bob@biloxi.com', false],
  ['sip:bob@[2001:DB8::1]', 'sip:bob@[2001:db8::1]', true],
])('%s and %s are the same: %s', (one, other, isSame) => {
  expect(isSameUri(one, other)).toBe(isSame)
  expect(isSameUri(other, one)).toBe(isSame)
})

test('names, commas and semicolons in quotes and brackets do not split a Contact', () => {
  const header = '"A, \\"B\\" <x>" <sip:a@h;p=1>;q=0.25, sip:b@h;expires=70 , Name <sip:c@h>'
  const contacts = contactsOf(header)
  expect(contacts.kind === 'list' && contacts.contacts).toMatchObject([
    { uri: 'sip:a@h;p=1', q: 250, expiresSeconds: undefined },
    { uri: 'sip:b@h', q: 1_000, expiresSeconds: 70 },
    { uri: 'sip:c@h' },
  ])
})

test.each(['sip:a@h:99999', 'sip:a b@h', `sip:${'a'.repeat(600)}@h`, 'sip:a@h?x=y', 'sip:a@'])(
  'a contact that could not be called is refused: %s',
  (uri) => {
    expect(contactsOf(`<${uri}>`).kind).toBe('unreadable')
  },
)
