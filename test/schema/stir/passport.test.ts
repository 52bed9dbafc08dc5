import { createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { identityText, parseIdentity } from '../../../schema/stir/identity-header.ts'
import {
  divPayload,
  passportHeader,
  readPassport,
  shakenPayload,
} from '../../../schema/stir/passport.ts'
import { canonicalNumber } from '../../../schema/stir/canonical-number.ts'
import { rfcKey } from '../../support/stir-fixtures.ts'

const x5u = 'https://cert.example.org/passport.cer'

test('the example of RFC 8225 §7.1 verifies with the key that the RFC prints', () => {
  const identity =
    'eyJhbGciOiJFUzI1NiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly9jZXJ0LmV4YW1wbGUub3JnL3Bhc3' +
    'Nwb3J0LmNlciJ9.eyJkZXN0Ijp7InVyaSI6WyJzaXA6YWxpY2VAZXhhbXBsZS5jb20iXX0sImlhdCI6IjE0NDMyMDg' +
    'zNDUiLCJvcmlnIjp7InRuIjoiMTIxNTU1NTEyMTIifX0.rq3pjT1hoRwakEGjHCnWSwUnshd0-zJ6F1VOgFWSjHBr8' +
    `Qjpjlk-cpFYpFYsojNCpTzO3QfPOlckGaS6hEck7w;info=<${x5u}>`
  const parsed = parseIdentity(identity)
  if (parsed === undefined) throw new Error('the header is not read')
  const { header, payload, signature } = parsed
  const key = createPublicKey(rfcKey)
  const holds = verify(
    'sha256',
    Buffer.from(`${header}.${payload}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  expect(holds).toBe(true)
  // Its iat is a text (erratum 5985), which no PASSporT may have.
  expect(readPassport(header, payload)).toBe('iat is no time')
})

test('the example of RFC 8225, appendix A, is read', () => {
  const header =
    'eyJhbGciOiJFUzI1NiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly9jZXJ0LmV4YW1wbGUub3JnL3Bhc3' +
    'Nwb3J0LmNlciJ9'
  const payload =
    'eyJkZXN0Ijp7InVyaSI6WyJzaXA6YWxpY2VAZXhhbXBsZS5jb20iXX0sImlhdCI6MTQ3MTM3NTQxOCwib3JpZyI6ey' +
    'J0biI6IjEyMTU1NTUxMjEyIn19'
  expect(readPassport(header, payload)).toEqual({
    ...{ kind: 'none', x5u, orig: '12155551212', dest: [], iat: 1_471_375_418 },
    ...{ attestation: null, origid: null, div: undefined },
  })
})

test('the PASSporT of RFC 8588 is written as the RFC prints it, and read', () => {
  const header =
    'eyJhbGciOiJFUzI1NiIsInBwdCI6InNoYWtlbiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly9jZXJ0Lm' +
    'V4YW1wbGUub3JnL3Bhc3Nwb3J0LmNlciJ9'
  const payload =
    'eyJhdHRlc3QiOiJBIiwiZGVzdCI6eyJ0biI6WyIxMjE1NTU1MTIxMyJdfSwiaWF0IjoxNDcxMzc1NDE4LCJvcmlnIj' +
    'p7InRuIjoiMTIxNTU1NTEyMTIifSwib3JpZ2lkIjoiMTIzZTQ1NjctZTg5Yi0xMmQzLWE0NTYtNDI2NjU1NDQwMDAw' +
    'In0'
  const origid = '123e4567-e89b-12d3-a456-426655440000'
  const claims = { orig: '12155551212', dest: '12155551213', iat: 1_471_375_418, origid }
  expect(passportHeader('shaken', x5u)).toBe(header)
  expect(shakenPayload({ ...claims, attest: 'A' })).toBe(payload)
  expect(readPassport(header, payload)).toEqual({
    ...{ kind: 'shaken', x5u, orig: claims.orig, dest: [claims.dest], iat: claims.iat },
    ...{ attestation: 'A', origid, div: undefined },
  })
})

test('the PASSporT of RFC 8946 is written as the RFC prints it, and read', () => {
  const header =
    'eyJhbGciOiJFUzI1NiIsInBwdCI6ImRpdiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly93d3cuZXhhbX' +
    'BsZS5jb20vY2VydC5jZXIifQ'
  const claims = {
    dest: '12155551214',
    div: '12155551213',
    iat: 1_443_208_345,
    orig: '12155551212',
  }
  expect(passportHeader('div', 'https://www.example.com/cert.cer')).toBe(header)
  const payload = divPayload(claims)
  expect(Buffer.from(payload, 'base64url').toString()).toBe(
    '{"dest":{"tn":["12155551214"]},"div":{"tn":"12155551213"},"iat":1443208345,' +
      '"orig":{"tn":"12155551212"}}',
  )
  expect(readPassport(header, payload)).toMatchObject({ kind: 'div', div: claims.div })
})

test.each([
  ['+1 (215) 555-1212', '12155551212'],
  ['12155551212', '12155551212'],
  ['*67#', '*67#'],
  ['alice', undefined],
  ['', undefined],
  ['+', undefined],
  ['1'.repeat(65), undefined],
])('%j is %j in canonical form', (text, canonical) => {
  expect(canonicalNumber(text)).toBe(canonical)
})

test.each([
  [`;info=<${x5u}>`, {}],
  [` ; info = <${x5u}> ; alg = ES256 ; ppt = "shaken"`, { alg: 'ES256', ppt: 'shaken' }],
  [`;INFO=<${x5u}>;PPT=div;other`, { ppt: 'div' }],
  [`;other="a;b";info=<${x5u}>`, {}],
])('the parameters %j are read', (tail, found) => {
  const jws = `e30.e30.${'A'.repeat(86)}`
  expect(parseIdentity(`${jws}${tail}`)).toEqual({
    ...{ header: 'e30', payload: 'e30', signature: 'A'.repeat(86), info: x5u },
    ...{ alg: undefined, ppt: undefined, ...found },
  })
})

test('what is written is read', () => {
  const jws = `e30.e30.${'A'.repeat(86)}`
  expect(parseIdentity(identityText(jws, x5u, 'shaken'))).toMatchObject({
    ...{ info: x5u, alg: 'ES256', ppt: 'shaken' },
  })
})

test.each(['e30..', '.e30.', 'e30', ''])('a value of the parts %j is not read', (start) => {
  expect(parseIdentity(`${start}${'A'.repeat(86)};info=<${x5u}>`)).toBeUndefined()
})
