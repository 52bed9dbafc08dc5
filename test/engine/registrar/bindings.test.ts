import { expect, test } from 'vitest'
import {
  type Binding,
  type Registration,
  bindingLimits,
  register,
  targetOf,
} from '../../../engine/registrar/bindings.ts'
import { contactsOf, isSameUri } from '../../../engine/registrar/contact.ts'

const now = 1_000_000_000_000
const source = { protocol: 'udp', address: '203.0.113.7', port: 5_060 }

function request(contact: string | undefined, more: Partial<Registration> = {}): Registration {
  return {
    contacts: contactsOf(contact),
    expiresSeconds: undefined,
    callId: 'c1',
    cseq: 10,
    path: [],
    userAgent: '',
    source,
    knowsPath: false,
    holder: 'one',
    ...more,
  }
}

const apply = (present: readonly Binding[], ...from: Parameters<typeof request>) =>
  register(present, request(...from), now, bindingLimits)

/** The bindings after a request that must succeed. */
function after(present: readonly Binding[], ...from: Parameters<typeof request>) {
  const result = apply(present, ...from)
  if (result.kind === 'refused') throw new Error(`${result.status} ${result.reason}`)
  return result.bindings
}

const secondsOf = (bindings: readonly Binding[]): number[] =>
  bindings.map(({ expiresAt }) => (expiresAt - now) / 1_000)

// RFC 3261 §10.2.1.1: the parameter of the Contact goes before the header, the header before the
// default.
test.each([
  ['<sip:a@h>', undefined, 3_600],
  ['<sip:a@h>', 600, 600],
  ['<sip:a@h>;expires=120', 600, 120],
  ['<sip:a@h>;expires=60', undefined, 60],
  ['<sip:a@h>;expires=100000', undefined, 7_200],
  ['<sip:a@h>;expires=never', undefined, 3_600],
])('%s with Expires %s lives for %s s', (contact, expiresSeconds, seconds) => {
  expect(secondsOf(after([], contact, { expiresSeconds }))).toEqual([seconds])
})

test.each([1, 59])('%s s is too brief: 423 with Min-Expires, and nothing changes', (seconds) => {
  expect(apply([], `<sip:a@h>;expires=600, <sip:b@h>;expires=${seconds}`)).toEqual({
    kind: 'refused',
    status: 423,
    reason: 'Interval Too Brief',
    headers: { 'Min-Expires': '60' },
  })
})

test('a refresh replaces its binding; expires=0 ends one, Contact: * with Expires: 0 all', () => {
  const two = after([], '<sip:a@h>, <sip:b@h>;q=0.3')
  expect(two.map(({ q }) => q)).toEqual([1_000, 300])
  const refreshed = after(two, '<sip:a@H:5060>;expires=99, <sip:a@h>;expires=100', { cseq: 11 })
  expect(secondsOf(refreshed)).toEqual([3_600, 99, 100])
  expect(after(two, '<sip:a@h>;expires=0', { cseq: 11 }).map(({ contact }) => contact)).toEqual([
    'sip:b@h',
  ])
  expect(apply(two, '*', { cseq: 11, expiresSeconds: 0 })).toEqual({
    kind: 'accepted',
    bindings: [],
    saved: [],
    refreshed: [],
    removed: ['sip:a@h', 'sip:b@h'],
  })
})

test.each<[string, Partial<Registration>, 'saved' | 'refreshed']>([
  ['the same again', {}, 'refreshed'],
  ['another Call-ID', { callId: 'c2' }, 'saved'],
  ['another User-Agent', { userAgent: 'x' }, 'saved'],
  ['another port of its NAT', { source: { ...source, port: 1 } }, 'saved'],
  ['another Path', { path: ['<sip:edge;lr>'] }, 'saved'],
])('%s: what is stored of a binding is no more than what changed', (_, more, list) => {
  const present = after([], '<sip:a@h>')
  const result = apply(present, '<sip:a@h>', { cseq: 11, ...more })
  const others = { saved: [], refreshed: [], removed: [] }
  expect(result).toMatchObject({ ...others, [list]: [{ contact: 'sip:a@h', cseq: 11 }] })
})

test.each([
  ['*', undefined],
  ['*', 3_600],
  ['*, <sip:a@h>', 0],
  ['<sip:a@h', 0],
  ['<http://a@h>', 60],
  ['<sip:a@h\r\nX: y>', 60],
  ['sip:', 60],
])('Contact: %s with Expires %s is 400', (contact, expiresSeconds) => {
  expect(apply([], contact, { expiresSeconds })).toMatchObject({ status: 400 })
})

// RFC 3261 §10.3 step 7.
test('an older REGISTER of the same Call-ID fails whole; another Call-ID is another phone or its reboot', () => {
  const one = after([], '<sip:a@h>')
  for (const cseq of [9, 10])
    expect(apply(one, '<sip:new@h>, <sip:a@h>', { cseq })).toMatchObject({ status: 500 })
  expect(apply(one, '*', { cseq: 10, expiresSeconds: 0 })).toMatchObject({ status: 500 })
  expect(after(one, '<sip:a@h>', { cseq: 11 })).toHaveLength(1)
  expect(after(one, '<sip:a@h>', { cseq: 1, callId: 'c2' })).toHaveLength(1)
})

const usersOf = (bindings: readonly Binding[]): readonly string[] =>
  bindings.map(({ contact }) => contact.slice('sip:'.length, -'@h'.length))

test('five contacts at most; expired ones do not count, and a refresh of five is no sixth', () => {
  const five = after([], [1, 2, 3, 4, 5].map((user) => `<sip:${user}@h>`).join(','))
  expect(after(five, '<sip:3@h>', { cseq: 11 })).toHaveLength(5)
  const six = [1, 2, 3, 4, 5, 6].map((user) => `<sip:${user}@h>`).join(',')
  expect(apply([], six)).toMatchObject({ kind: 'refused', status: 403 })
  const old = five.map((binding) => ({ ...binding, expiresAt: now }))
  expect(after(old, '<sip:6@h>')).toHaveLength(1)
})

test('for a sixth contact the one makes room that was refreshed the longest time ago', () => {
  const at = (minute: number) => ({ now: now + minute * 60_000 })
  let bindings: readonly Binding[] = []
  for (const user of [1, 2, 3, 4, 5, 2]) {
    const asked = request(`<sip:${user}@h>`, { callId: `c${user}`, cseq: 10 + bindings.length })
    const result = register(bindings, asked, at(bindings.length).now, bindingLimits)
    if (result.kind === 'refused') throw new Error(result.reason)
    bindings = result.bindings
  }
  const sixth = register(bindings, request('<sip:6@h>'), at(9).now, bindingLimits)
  expect(sixth).toMatchObject({ kind: 'accepted', removed: ['sip:1@h'] })
  const two = register(bindings, request('<sip:6@h>, <sip:7@h>'), at(9).now, bindingLimits)
  expect(two).toMatchObject({ removed: ['sip:1@h', 'sip:3@h'] })
  expect(two.kind === 'accepted' && usersOf(two.bindings)).toEqual(['4', '5', '2', '6', '7'])
})

test('a binding that leads to no phone makes room before an older one that does', () => {
  const five = [1, 2, 3, 4, 5].reduce<readonly Binding[]>(
    (bindings, user) => after(bindings, `<sip:${user}@h>`, { callId: `c${user}` }),
    [],
  )
  const isReachable = ({ contact }: Binding): boolean => contact !== 'sip:4@h'
  const sixth = register(five, request('<sip:6@h>'), now, bindingLimits, isReachable)
  expect(sixth).toMatchObject({ kind: 'accepted', removed: ['sip:4@h'] })
})

test('a phone may name one contact twice, or two of one instance, in one REGISTER', () => {
  const twice = after([], '<sip:a@h>;expires=100, <sip:a@h>;expires=200')
  expect(secondsOf(twice)).toEqual([200])
  const ways = '<sip:a@h>;+sip.instance="<urn:x>", <sip:a@h;transport=tcp>;+sip.instance="<urn:x>"'
  const both = after([], ways)
  expect(both).toHaveLength(2)
  expect(after(both, ways, { cseq: 11 }).map(({ contact }) => contact)).toEqual([
    'sip:a@h',
    'sip:a@h;transport=tcp',
  ])
  expect(apply(both, ways, { cseq: 10 })).toMatchObject({ status: 500 })
})

test('a phone that comes back under a new address takes the place of its old one', () => {
  const phone = ';+sip.instance="<urn:uuid:1>"'
  const one = after([], `<sip:a@10.0.0.1:1>${phone}`)
  const result = apply(one, `<sip:a@10.0.0.1:2>${phone}`, { cseq: 11 })
  expect(result).toMatchObject({ removed: ['sip:a@10.0.0.1:1'] })
  expect(after(one, `<sip:a@10.0.0.1:2>${phone};reg-id=2`, { cseq: 11 })).toHaveLength(2)
  expect(after(one, '<sip:a@10.0.0.1:2>;+sip.instance="<urn:uuid:2>"')).toHaveLength(2)
})

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

const bound = (
  contact: string,
  source: Partial<Binding['source']>,
  path: string[] = [],
): Binding => ({
  contact,
  instance: null,
  regId: null,
  q: 1_000,
  callId: 'c',
  cseq: 1,
  path,
  userAgent: '',
  holder: 'one',
  registeredAt: 0,
  expiresAt: 1,
  source: { protocol: 'udp', address: '198.51.100.7', port: 5_060, ...source },
})
const media = (...binding: Parameters<typeof bound>) => {
  const { isOnWebSocket, natAddress } = targetOf(bound(...binding))
  return { isOnWebSocket, natAddress }
}

test('a phone behind NAT is known by its private Contact from a public address', () => {
  expect(media('sip:1@192.168.1.7:5062', {})).toEqual({ natAddress: '198.51.100.7' })
  expect(media('sip:1@192.168.1.7:5062', { protocol: 'tls' }).natAddress).toBe('198.51.100.7')
  expect(media('sip:1@198.51.100.7:40000', {})).toEqual({})
  expect(media('sip:1@192.168.1.7', { address: '192.168.1.7' })).toEqual({})
  expect(media('sip:1@phone.example', {})).toEqual({})
})

test('a browser is known by its transport', () => {
  for (const protocol of ['ws', 'wss'])
    expect(media('sip:x@abc.invalid;transport=ws', { protocol })).toEqual({ isOnWebSocket: true })
})
