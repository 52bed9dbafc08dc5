import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Claims, signJwt, verifyJwt } from '../../../control/auth/sessions.ts'

const secret = 'a secret of this test'
const claims: Claims = {
  iss: 'tollgate',
  sub: '1',
  kind: 'user',
  jti: 'j',
  iat: 1_000,
  exp: 2_000,
  pwd: 'p',
}
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs any header with any algorithm's hash, like an attacker without the secret. */
function forged(header: object, payload: object, key: string, algorithm = 'sha256'): string {
  const text = `${encode(header)}.${encode(payload)}`
  return `${text}.${createHmac(algorithm, key).update(text).digest('base64url')}`
}

test('a token is valid until its expiry, and not at it', () => {
  const token = signJwt(claims, secret)
  expect(verifyJwt(token, secret, 1_999_999)).toEqual(claims)
  expect(verifyJwt(token, secret, 2_000_000)).toBeUndefined()
})

test.each([
  ['alg none without signature', `${encode({ alg: 'none' })}.${encode(claims)}.`],
  ['alg none', forged({ alg: 'none', typ: 'JWT' }, claims, secret)],
  [
    'alg HS512 under the right secret',
    forged({ alg: 'HS512', typ: 'JWT' }, claims, secret, 'sha512'),
  ],
  ['a key of its own in the header', forged({ alg: 'HS256', typ: 'JWT', jwk: {} }, claims, secret)],
  ['another secret', forged({ alg: 'HS256', typ: 'JWT' }, claims, 'guess')],
  ['an empty secret', forged({ alg: 'HS256', typ: 'JWT' }, claims, '')],
  ['a missing claim', forged({ alg: 'HS256', typ: 'JWT' }, { ...claims, exp: undefined }, secret)],
  ['another issuer', forged({ alg: 'HS256', typ: 'JWT' }, { ...claims, iss: 'x' }, secret)],
])('a token with %s is refused', (_, token) => {
  expect(verifyJwt(token, secret, 1_000_000)).toBeUndefined()
})

test('a token of which any character was changed is refused', () => {
  const token = signJwt(claims, secret)
  const isLast = (at: number) => at === token.length - 1
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'z', '9', '.'), (at, character) => {
      // The last character holds four bits of the signature: another one may mean the same bytes.
      fc.pre(token[at] !== character && !isLast(at))
      const changed = token.slice(0, at) + character + token.slice(at + 1)
      expect(verifyJwt(changed, secret, 1_000_000)).toBeUndefined()
    }),
  )
})
