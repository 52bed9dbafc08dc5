/** Our answer to a digest challenge (RFC 3261 §22): who we are, told once. */
import type { AnswerChallenge, SipResponse } from './drachtio.ts'

export interface Credentials {
  readonly username: string
  readonly password: string
  /** The only realm that is answered; null: any. */
  readonly realm: string | null
}

/**
 * The library would answer for ever whoever goes on asking, so the second challenge is the refusal
 * of what we said; once more when only the nonce was old. `onRefused`: nothing more is sent.
 */
export function answerChallenges(
  { username, password, realm }: Credentials,
  onRefused: (response: SipResponse) => void,
): AnswerChallenge {
  let renewals = 0
  return (request, response, done) => {
    const isProxy = response.status === 407
    const challenge = response.headers[isProxy ? 'proxy-authenticate' : 'www-authenticate'] ?? ''
    const hasAnswered =
      request.headers[isProxy ? 'proxy-authorization' : 'authorization'] !== undefined
    if (!hasAnswered) renewals = 0
    const mayAnswer = !hasAnswered || (isStale(challenge) && renewals++ === 0)
    if (mayAnswer && isRealm(challenge, realm)) return done(null, username, password)
    done(new Error('the credentials are refused'))
    return onRefused(response)
  }
}

const isStale = (challenge: string): boolean => /\bstale\s*=\s*"?true\b/i.test(challenge)

const isRealm = (challenge: string, realm: string | null): boolean =>
  realm === null || /\brealm\s*=\s*"([^"]*)"/i.exec(challenge)?.[1] === realm
