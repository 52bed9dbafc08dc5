import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { Challenges } from '../../../../engine/call/user-agent/challenges.ts'

const uri = 'sip:1555@192.0.2.1;transport=udp'

const nameOf = (status: 401 | 407): string =>
  status === 407 ? 'proxy-authenticate' : 'www-authenticate'

const answering = (realm: string | null = null) => {
  const challenges = new Challenges({ username: 'me', password: 'secret', realm })
  /** The user that is named to the challenge of a request with this CSeq. */
  const says = (status: 401 | 407, asked: string, cseq = 1): string | undefined => {
    const request = { method: 'INVITE', uri, callId: 'c', cseq }
    const answer = challenges.answer(status, { [nameOf(status)]: asked }, request)
    const name = status === 407 ? 'Proxy-Authorization' : 'Authorization'
    return /username="(.*?)"/.exec(answer?.[name] ?? '')?.[1]
  }
  return { says }
}

const challenge = 'Digest realm="north", nonce="1"'

test('a challenge is answered once; the next one is the refusal', () => {
  const { says } = answering()
  expect(says(407, challenge)).toBe('me')
  expect(says(407, challenge, 2)).toBeUndefined()
})

test('a nonce that has become old is renewed once', () => {
  const { says } = answering()
  const stale = `${challenge}, stale=true`
  expect(says(401, challenge, 1)).toBe('me')
  expect(says(401, stale, 2)).toBe('me')
  expect(says(401, stale, 3)).toBeUndefined()
})

test('a proxy and the server behind it may both ask', () => {
  const { says } = answering()
  expect(says(407, challenge)).toBe('me')
  expect(says(401, challenge, 2)).toBe('me')
})

test('only the configured realm gets an answer', () => {
  expect(answering('north').says(401, challenge)).toBe('me')
  expect(answering('south').says(401, challenge)).toBeUndefined()
  expect(answering('south').says(401, 'Basic')).toBeUndefined()
})

/** The request that is sent for a challenge. */
const sentFor = (asked: string, realm: string | null = null): string | undefined =>
  new Challenges({ username: 'm"e', password: 'secret', realm }).answer(
    401,
    { 'www-authenticate': asked },
    { method: 'INVITE', uri, callId: 'c1', cseq: 1 },
  )?.['Authorization']

/** Checks the response as RFC 7616 §3.4.1 computes it. */
function isRight(value: string, realm: string): boolean {
  const field = (name: string): string =>
    new RegExp(`(?:^Digest |,)${name}="?([^",]*)"?`).exec(value)?.[1] ?? ''
  const name = field('algorithm') === 'SHA-256' ? 'sha256' : 'md5'
  const digest = (...parts: readonly string[]): string => hash(name, parts.join(':'), 'hex')
  const between = field('qop') === '' ? [] : [field('nc'), field('cnonce'), field('qop')]
  const [ha1, ha2] = [digest('m"e', realm, 'secret'), digest('INVITE', uri)]
  return (
    field('response') === digest(ha1, /nonce="([^"]*)"/.exec(value)?.[1] ?? '', ...between, ha2)
  )
}

const [strong, plain] = ['nonce="s", algorithm=SHA-256, qop="auth"', 'nonce="p", algorithm=MD5']

test.each([
  ['MD5', 'Digest realm="n", nonce="a,b", qop="auth,auth-int", opaque="o"', 'nonce="a,b"'],
  ['MD5', 'Digest realm="n", nonce="a", qop="auth-int, auth"', 'qop=auth'],
  ['MD5', 'DIGEST REALM="n", Nonce=a', 'nonce="a"'],
  ['SHA-256', `Digest realm="n", ${strong}`, 'algorithm=SHA-256'],
  ['SHA-256', `Digest realm="n", ${strong}, Digest realm="n", ${plain}`, 'nonce="s"'],
  ['MD5', `Digest realm="n", ${plain}, Digest realm="n", ${strong}`, 'nonce="p"'],
  [
    'MD5',
    `Digest realm="n", nonce="x", algorithm=SHA-512-256, Digest realm="n", ${plain}`,
    'nonce="p"',
  ],
])('%s is the answer to %s', (algorithm, challenge, part) => {
  const value = sentFor(challenge) ?? ''
  expect(value).toContain(`algorithm=${algorithm}`)
  expect(value).toContain(part)
  expect(value).toContain('username="m\\"e"')
  expect(value.includes('opaque="o"')).toBe(challenge.includes('opaque'))
  expect(isRight(value.replace('m\\"e', 'me'), 'n')).toBe(true)
})

test.each([
  'Digest realm="n", nonce="a", algorithm=SHA-512-256',
  'Digest realm="n", nonce="a", qop="auth-int"',
  'Digest realm="n"',
  'Basic realm="n"',
])('no answer to %s', (challenge) => {
  expect(sentFor(challenge)).toBeUndefined()
})

test('of several realms ours is answered', () => {
  const value = sentFor(`Digest realm="a", ${strong}, Digest realm="b", ${plain}`, 'b')
  expect(value).toContain('realm="b",nonce="p"')
})
