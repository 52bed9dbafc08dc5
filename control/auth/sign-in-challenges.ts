/**
 * The answer to a right password where a second factor is asked for: a text that proves the
 * password for five minutes, and opens nothing by itself.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { fingerprint } from './sessions.ts'
import type { UserRow, UserStore } from './user-store.ts'

export const CHALLENGE_SECONDS = 300
export const MAX_CHALLENGE_LENGTH = 400

/** By what the session will be carried: the cookie of the console, or a token. */
export type SessionCarrier = 'cookie' | 'token'

const challengeForm = z.strictObject({
  user: z.int(),
  carrier: z.enum(['cookie', 'token']),
  /** The password that was given: another one ends the challenge. */
  mark: z.string(),
  expires: z.number(),
})

export class SignInChallenges {
  readonly #users: UserStore
  readonly #readSecret: () => Promise<string>

  constructor(users: UserStore, readSecret: () => Promise<string>) {
    this.#users = users
    this.#readSecret = readSecret
  }

  async issue(user: UserRow, carrier: SessionCarrier, now: number): Promise<string> {
    const content: z.output<typeof challengeForm> = {
      user: user.id,
      carrier,
      mark: fingerprint(user.password_hash),
      expires: now + CHALLENGE_SECONDS * 1_000,
    }
    const text = Buffer.from(JSON.stringify(content)).toString('base64url')
    return `${text}.${(await this.#sign(text)).toString('base64url')}`
  }

  /** Resolves with the user who gave the password; undefined: forged, too old, or not valid now. */
  async open(
    challenge: string,
    carrier: SessionCarrier,
    now: number,
  ): Promise<UserRow | undefined> {
    const [text = '', signature = ''] = challenge.split('.')
    const expected = await this.#sign(text)
    const given = Buffer.from(signature, 'base64url')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
    const parsed = challengeForm.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    if (!parsed.success || parsed.data.carrier !== carrier) return undefined
    if (parsed.data.expires <= now) return undefined
    const user = await this.#users.byId(parsed.data.user)
    if (user === undefined || user.is_active === 0) return undefined
    return fingerprint(user.password_hash) === parsed.data.mark ? user : undefined
  }

  async #sign(text: string): Promise<Buffer> {
    const key = createHmac('sha256', await this.#readSecret())
      .update('sign-in challenges')
      .digest()
    return createHmac('sha256', key).update(text).digest()
  }
}
