import { expect, test } from 'vitest'
import {
  challengeValue,
  credentialsFor,
  expectedResponse,
  isSameResponse,
} from '../../../../engine/registrar/digest/digest.ts'
import { digestSecrets } from '../../../../control/resources/extensions.ts'

// RFC 7616 §3.9.1, both algorithms.
const example = (algorithm: string, response: string): string =>
  'Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", ' +
  `algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, ` +
  `cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, response="${response}"`

const secrets = digestSecrets('Mufasa', 'http-auth@example.org', 'Circle of Life')

test.each([
  ['MD5', '8ca523f5e9506fed4657c9700eebdbec', secrets.md5],
  ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1', secrets.sha256],
] as const)('the example of RFC 7616 answers as it says: %s', (algorithm, response, ha1) => {
  const credentials = credentialsFor('http-auth@example.org', example(algorithm, response))
  if (credentials === undefined) throw new Error('not read')
  expect(credentials).toMatchObject({ username: 'Mufasa', algorithm, protection: { count: 1 } })
  const expected = expectedResponse(credentials, algorithm, 'GET', ha1)
  expect(expected).toBe(response)
  expect(isSameResponse(credentials.response, expected)).toBe(true)
  expect(isSameResponse(expectedResponse(credentials, algorithm, 'PUT', ha1), expected)).toBe(false)
})

// RFC 2617 §3.5 without quality of protection, as phones of that age answer.
test('an answer without qop is checked as RFC 2069 wrote it', () => {
  const { md5 } = digestSecrets('bob', 'biloxi.com', 'zanzibar')
  const header =
    'Digest username="bob",realm="biloxi.com",nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093",' +
    'uri="sip:bob@biloxi.com",response="bf57e4e0d0bffc0fbaedce64d59add5e"'
  const credentials = credentialsFor('biloxi.com', header)
  expect(credentials?.protection).toBeNull()
  expect(credentials && expectedResponse(credentials, 'MD5', 'INVITE', md5)).toBe(
    credentials?.response,
  )
})

test('of several headers in one the one for our realm counts, whatever stands in quotes', () => {
  const other = 'Digest username="a, Digest realm=\\"x\\"", realm="other", nonce="n", response="r"'
  const ours = 'Digest username="b", realm="ACME.example", nonce="n2", response="R2"'
  for (const header of [`${other}, ${ours}`, `${ours},${other}`, `Basic abc, ${ours}`])
    expect(credentialsFor('acme.example', header)).toMatchObject({ nonce: 'n2', response: 'r2' })
})

test.each([
  undefined,
  '',
  'Basic YTpi',
  'Digest realm="r"',
  'Digest realm="r", nonce="n", response="x", qop=auth-int, nc=00000001, cnonce="c"',
  'Digest realm="r", nonce="n", response="x", qop=auth, nc=1, cnonce="c"',
  'Digest realm="r", nonce="n", response="x", qop=auth, nc=0000000g, cnonce="c"',
  `Digest realm="r", nonce="${'n'.repeat(5_000)}", response="x"`,
])('what cannot be checked is no credentials: %s', (header) => {
  expect(credentialsFor('r', header)).toBeUndefined()
})

test('a challenge says what RFC 7616 §3.3 asks for', () => {
  expect(challengeValue('acme.example', 'n', 'SHA-256', true)).toBe(
    'Digest realm="acme.example", nonce="n", algorithm=SHA-256, qop="auth", stale=true',
  )
})
