import { expect, test } from 'vitest'
import { answerChallenges } from '../../../../engine/call/sip/challenge.ts'
import type { SipRequest, SipResponse } from '../../../../engine/call/sip/drachtio.ts'

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
      { headers: { cseq: `${cseq} INVITE` } as Record<string, string> } as SipRequest,
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

test('only the realm that is known is told the password', () => {
  expect(answering('north').says(401, challenge)).toBe('me:secret')
  expect(answering('south').says(401, challenge)).toBeUndefined()
  expect(answering('south').says(401, 'Basic')).toBeUndefined()
})
