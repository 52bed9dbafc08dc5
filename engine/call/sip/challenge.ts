/** Our answer to a digest challenge (RFC 3261 §22): who we are, told once. */
import type { AnswerChallenge, SipResponse } from './drachtio.ts'

export interface Credentials {
  readonly username: string
  readonly password: string
  /** The only realm that is answered; null: any. */
  readonly realm: string | null
}

/** What has been said since the first challenge of one request. */
interface Conversation {
  /** CSeq number under which the library repeats the request. */
  readonly cseq: number
  readonly asked: ReadonlySet<number>
  readonly isRenewed: boolean
}

/**
 * The library would answer for ever whoever goes on asking, so the second challenge is the refusal
 * of what we said; once more when only the nonce was old. `onRefused`: nothing more is sent.
 */
export function answerChallenges(
  { username, password, realm }: Credentials,
  onRefused: (response: SipResponse) => void,
): AnswerChallenge {
  let last: Conversation | undefined
  return (request, response, done) => {
    const { status } = response
    const challenge =
      response.headers[status === 407 ? 'proxy-authenticate' : 'www-authenticate'] ?? ''
    const cseq = Number.parseInt(request.headers['cseq'] ?? '0', 10)
    const before = last?.cseq === cseq ? last : undefined
    const isRenewal = before?.asked.has(status) === true
    const mayRenew = isStale(challenge) && before?.isRenewed === false
    if ((isRenewal && !mayRenew) || !isRealm(challenge, realm)) {
      done(new Error('the credentials are refused'))
      return onRefused(response)
    }
    last = {
      cseq: cseq + 1,
      asked: new Set([...(before?.asked ?? []), status]),
      isRenewed: before?.isRenewed === true || isRenewal,
    }
    return done(null, username, password)
  }
}

const isStale = (challenge: string): boolean => /\bstale\s*=\s*"?true\b/i.test(challenge)

const isRealm = (challenge: string, realm: string | null): boolean =>
  realm === null || /\brealm\s*=\s*"([^"]*)"/i.exec(challenge)?.[1] === realm
