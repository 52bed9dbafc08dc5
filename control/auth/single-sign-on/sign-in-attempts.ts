/**
 * A sign-in that is under way at a provider. The browser keeps one random text in a cookie; state,
 * nonce and code verifier follow from it by a key that only the instances have, so that nothing is
 * stored and an answer counts only in the browser that has asked.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { MINUTE_MS } from '../../../schema/clock.ts'
import type { SignInProof } from './provider-clients.ts'

export const ATTEMPT_SECONDS = 600
const MAX_COOKIE_LENGTH = 400

const attemptForm = z.strictObject({ provider: z.int(), expires: z.number(), random: z.string() })

export interface SignInAttempt extends SignInProof {
  readonly providerId: number
}

export class SignInAttempts {
  readonly #readSecret: () => Promise<string>
  readonly #randomBytes: (size: number) => Buffer

  constructor(readSecret: () => Promise<string>, randomBytes: (size: number) => Buffer) {
    this.#readSecret = readSecret
    this.#randomBytes = randomBytes
  }

  async begin(
    providerId: number,
    now: number,
  ): Promise<{ readonly cookie: string; readonly attempt: SignInAttempt }> {
    const content: z.output<typeof attemptForm> = {
      provider: providerId,
      expires: now + (ATTEMPT_SECONDS / 60) * MINUTE_MS,
      random: this.#randomBytes(32).toString('base64url'),
    }
    const text = Buffer.from(JSON.stringify(content)).toString('base64url')
    const key = await this.#key()
    const cookie = `${text}.${derived(key, 'cookie', text)}`
    return { cookie, attempt: attemptOf(key, providerId, text) }
  }

  /** Undefined: it is forged, too old, or of another database. */
  async open(cookie: string, now: number): Promise<SignInAttempt | undefined> {
    if (cookie.length > MAX_COOKIE_LENGTH) return undefined
    const [text = '', signature = ''] = cookie.split('.')
    const key = await this.#key()
    if (!isEqual(signature, derived(key, 'cookie', text))) return undefined
    const parsed = attemptForm.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    if (!parsed.success || parsed.data.expires <= now) return undefined
    return attemptOf(key, parsed.data.provider, text)
  }

  async #key(): Promise<Buffer> {
    return createHmac('sha256', await this.#readSecret())
      .update('single sign-on')
      .digest()
  }
}

const attemptOf = (key: Buffer, providerId: number, text: string): SignInAttempt => ({
  providerId,
  state: derived(key, 'state', text),
  nonce: derived(key, 'nonce', text),
  verifier: derived(key, 'verifier', text),
})

const derived = (key: Buffer, purpose: string, text: string): string =>
  createHmac('sha256', key).update(`${purpose} ${text}`).digest('base64url')

/** Takes the same time wherever two texts differ. */
export function isEqual(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)]
  return first.length === second.length && timingSafeEqual(first, second)
}
