/** Passwords of people: argon2id off the main thread, with bounded concurrency. */
import { hash, hashSync, verify, verifySync } from '@node-rs/argon2'
import { ApiError } from '../../http/api-error.ts'

/** Argon2id (the package's default), OWASP's second choice: 19 MiB, two passes, one lane; 10 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Each running hash uses 19 MiB and one of libuv's four threads. */
const MAX_RUNNING = 2
const MAX_WAITING = 64

export const MIN_PASSWORD_LENGTH = 8
export const MAX_PASSWORD_LENGTH = 128

export const hashPassword = (password: string): Promise<string> => hash(password, cost)

/** The same on the calling thread, for commands, which serve no requests. */
export const hashPasswordNow = (password: string): string => hashSync(password, cost)

/** As `hashPasswordNow`. */
export const isPasswordNow = (password: string, passwordHash: string): boolean =>
  verifySync(passwordHash, password)

export class PasswordCheck {
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Verified when there is no user, so that both responses take the same time. */
  #dummy: Promise<string> | undefined

  /** Throws 503 when too many logins are waiting. */
  async matches(password: string, passwordHash: string | null | undefined): Promise<boolean> {
    await this.#enter()
    try {
      const stored =
        passwordHash ?? (await (this.#dummy ??= hashPassword('no user has this password')))
      const isMatch = await verify(stored, password)
      return isMatch && passwordHash !== null && passwordHash !== undefined
    } finally {
      this.#leave()
    }
  }

  /** Computes the dummy hash ahead, so that the first login of an unknown user is not twice as slow. */
  async prepare(): Promise<void> {
    await (this.#dummy ??= hashPassword('no user has this password'))
  }

  async #enter(): Promise<void> {
    if (this.#running < MAX_RUNNING) {
      this.#running += 1
      return
    }
    if (this.#waiting.length >= MAX_WAITING)
      throw new ApiError(503, 'busy', 'Too many logins at once', {
        headers: { 'Retry-After': '1' },
      })
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Passes the slot to the next waiting login, or frees it. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#running -= 1
    else next()
  }
}
