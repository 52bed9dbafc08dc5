import { expect, test } from 'vitest'
import fc from 'fast-check'
import {
  FlowTokens,
  type FlowToken,
  type TokenUse,
} from '../../../../engine/registrar/hop/flow-token.ts'
import { SecretBox } from '../../../../schema/secrets/secret-box.ts'

const tokens = new FlowTokens(Buffer.alloc(32, 1))
const home = { domain: 'acme.example', extension: '101' }
const call: FlowToken = { kind: 'call', ...home, issuer: 'a', issuedAt: 1_700_000_000_000 }
const flow = { protocol: 'tls', address: '2001:db8::7', port: 40_001 }
const toPhone: FlowToken = { kind: 'to-phone', ...home, instance: 'a', flow }
const toInstance: FlowToken = {
  kind: 'to-instance',
  ...home,
  instance: 'a',
  address: '2001:db8::7',
}
const use: TokenUse = { holder: 'b', uri: 'sip:101@10.0.0.5:5060', callId: 'c1' }

test.each([call, toPhone, toInstance])(
  'a token of kind $kind is read as it was written',
  (token) => {
    expect(tokens.read(tokens.write(token, use), use)).toEqual(token)
  },
)

test('a token can stand as the user part of a SIP URI, and shows nothing of what it says', () => {
  for (const token of [call, toPhone, toInstance]) {
    const text = tokens.write(token, use)
    expect(text).toMatch(/^tg[cd]1\.[\w-]+$/)
    const bytes = Buffer.from(text.slice(5), 'base64url').toString('latin1')
    for (const said of ['acme', '101', '2001', 'tls']) expect(bytes).not.toContain(said)
  }
})

test.each([
  ['at another node', call, { ...use, holder: 'c' }],
  ['for another Contact', call, { ...use, uri: 'sip:102@10.0.0.5:5060' }],
  ['of a dialog at another node', toPhone, { ...use, holder: 'c' }],
  ['of a dialog in another call', toPhone, { ...use, callId: 'c2' }],
  ['of a phone in another call', toInstance, { ...use, callId: 'c2' }],
])('a token is no good %s', (_what, token, elsewhere) => {
  expect(tokens.read(tokens.write(token, use), elsewhere)).toBeUndefined()
})

test('a token of another key is refused', () => {
  const other = new FlowTokens(Buffer.alloc(32, 2))
  expect(tokens.read(other.write(call, use), use)).toBeUndefined()
})

test('what the same key encrypts for another purpose is no token', () => {
  const box = new SecretBox(Buffer.alloc(32, 1))
  const row = JSON.stringify([use.holder, use.uri])
  const fields = JSON.stringify(['c', home.domain, home.extension, 'a', 1_700_000_000_000])
  const sealed = box.seal({ table: 'flow token', column: 'contact', row }, fields)
  const text = Buffer.from(sealed.slice('enc1:'.length), 'base64').toString('base64url')
  expect(tokens.read(`tgc1.${text}`, use)).toBeUndefined()
})

test('a token of a call is none of a dialog, whatever its prefix says', () => {
  const text = tokens.write(call, use)
  expect(tokens.read(text.replace('tgc1.', 'tgd1.'), use)).toBeUndefined()
})

test('any change of a token makes it unreadable', () => {
  const text = tokens.write(toPhone, use)
  fc.assert(
    fc.property(fc.nat(text.length - 6), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const bytes = Buffer.from(text.slice(5), 'base64url')
      const index = at % bytes.length
      bytes[index] = (bytes[index] ?? 0) ^ flip
      return tokens.read(`tgd1.${bytes.toString('base64url')}`, use) === undefined
    }),
  )
})

test('what does not look like a token is none; what does, and is not, is refused', () => {
  for (const text of ['', 'c17', '1001', 'tgc2.AAAA', 'tgc1'])
    expect(tokens.read(text, use)).toBe('none')
  for (const text of ['tgc1.', 'tgd1.AAAA', 'tgc1.%00', `tgd1.${'A'.repeat(10_000)}`])
    expect(tokens.read(text, use)).toBeUndefined()
})
