import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { answerChallenges } from '../../../../engine/call/srf/challenge.ts'
import type { Agent, SipRequest, SipResponse } from '../../../../engine/call/srf/drachtio.ts'

const uri = 'sip:1555@192.0.2.1;transport=udp'

const answering = (realm: string | null = null) => {
  const refused: number[] = []
  const answer = answerChallenges({ username: 'me', password: 'secret', realm }, ({ status }) =>
    refused.push(status),
  )
  /** What is said to the challenge of a request with this CSeq. */
  const says = (status: 401 | 407, challenge: string, cseq = 1) => {
    let said: string | undefined
    const name = status === 407 ? 'proxy-authenticate' : 'www-authenticate'
    answer(
      {
        ...{ method: 'INVITE', uri },
        headers: { cseq: `${cseq} INVITE` },
      } as unknown as SipRequest,
      { status, headers: { [name]: challenge } } as unknown as SipResponse,
      (error, username, password) => {
        said = error ? undefined : `${username}:${password}`
      },
    )
    return said
  }
  return { says, refused }
}

const challenge = 'Digest realm="north", nonce="1"'

test('a challenge is answered once; the next one is the refusal', () => {
  const { says, refused } = answering()
  expect(says(407, challenge)).toBe('me:secret')
  expect(says(407, challenge, 2)).toBeUndefined()
  expect(refused).toEqual([407])
})

test('a nonce that has become old is renewed once', () => {
  const { says } = answering()
  const stale = `${challenge}, stale=true`
  expect(says(401, challenge, 1)).toBe('me:secret')
  expect(says(401, stale, 2)).toBe('me:secret')
  expect(says(401, stale, 3)).toBeUndefined()
})

test('a proxy and the server behind it may both ask', () => {
  const { says } = answering()
  expect(says(407, challenge)).toBe('me:secret')
  expect(says(401, challenge, 2)).toBe('me:secret')
})

test('a later request of the dialog is answered again', () => {
  const { says } = answering()
  expect(says(401, challenge, 1)).toBe('me:secret')
  expect(says(401, challenge, 3)).toBe('me:secret')
})

test('only the configured realm gets an answer', () => {
  expect(answering('north').says(401, challenge)).toBe('me:secret')
  expect(answering('south').says(401, challenge)).toBeUndefined()
  expect(answering('south').says(401, 'Basic')).toBeUndefined()
})

type Sent = Readonly<Record<string, string>>

/** Everything that goes out for a challenge: the first is the repeated request. */
function sentFor(challenge: string, realm: string | null = null): readonly Sent[] {
  const sent: Sent[] = []
  const waiting = new Map([['c1', true]])
  const agent = {
    mapServer: new Map([['socket', { pendingSipAuthRequests: waiting }]]),
    request: ({ headers }: { readonly headers: Sent }) => {
      sent.push({ ...headers })
      // Sending it brings another message, and that another request.
      if (sent.length === 1) agent.request({ headers: { Subject: 'another' } })
    },
  }
  const headers = { 'www-authenticate': challenge, 'call-id': 'c1' }
  const request = { method: 'INVITE', uri, headers: { cseq: '1 INVITE', 'call-id': 'c1' } }
  const answer = answerChallenges({ username: 'm"e', password: 'secret', realm }, () => undefined)
  answer(
    request as unknown as SipRequest,
    { status: 401, headers, agent: agent as unknown as Agent } as unknown as SipResponse,
    (error) => {
      if (!error) agent.request({ headers: { Authorization: 'of the library' } })
    },
  )
  // The library would take the next challenge for the answer.
  if (sent.length > 0) expect(waiting.size).toBe(0)
  return sent
}

/** What RFC 7616 §3.4.1 wants, from what was said. */
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
  const [repeated = {}, ...others] = sentFor(challenge)
  const value = repeated['Authorization'] ?? ''
  expect(value).toContain(`algorithm=${algorithm}`)
  expect(value).toContain(part)
  expect(value).toContain('username="m\\"e"')
  expect(value.includes('opaque="o"')).toBe(challenge.includes('opaque'))
  expect(isRight(value.replace('m\\"e', 'me'), 'n')).toBe(true)
  expect(others).toEqual([{ Subject: 'another' }])
})

test.each([
  'Digest realm="n", nonce="a", algorithm=SHA-512-256',
  'Digest realm="n", nonce="a", qop="auth-int"',
  'Digest realm="n"',
  'Basic realm="n"',
])('no answer to %s', (challenge) => {
  expect(sentFor(challenge)).toEqual([])
})

test('of several realms ours is answered', () => {
  const [repeated] = sentFor(`Digest realm="a", ${strong}, Digest realm="b", ${plain}`, 'b')
  expect(repeated?.['Authorization']).toContain('realm="b",nonce="p"')
})
