import { type Lane, hashPassword } from './passwords.ts'
import { verify } from '@node-rs/argon2'
import { ApiError } from '../http/api-error.ts'

/** One core at most, and 19 MiB: calls need the others. */
const MAX_RUNNING = 1

/** Waiting checks in each lane, and those of one address in it. */
const MAX_WAITING = 64
const MAX_OF_ADDRESS = 8

interface Asker {
  readonly lane: Lane
  /** One place in the turns: an address, or an IPv6 network of /64. */
  readonly source: string
}

export class PasswordCheck {
  #running = 0
  readonly #lanes: Readonly<Record<Lane, WaitingLane>> = {
    staff: new WaitingLane(),
    customers: new WaitingLane(),
  }
  #lastLane: Lane = 'customers'
  /** Verified when there is no user, so that both responses take the same time. */
  #dummy: Promise<string> | undefined

  /** Throws 503 when too many logins are waiting. */
  async matches(
    password: string,
    passwordHash: string | null | undefined,
    asker: Asker,
  ): Promise<boolean> {
    await this.#enter(asker)
    try {
      const stored =
        passwordHash ?? (await (this.#dummy ??= hashPassword('no user has this password')))
      const isMatch = await verify(stored, password)
      return isMatch && passwordHash !== null && passwordHash !== undefined
    } finally {
      this.#leave()
    }
  }

  /**
   * Computes the dummy hash ahead, so that the first login of an unknown user is not twice as slow.
   */
  async prepare(): Promise<void> {
    await (this.#dummy ??= hashPassword('no user has this password'))
  }

  async #enter({ lane, source }: Asker): Promise<void> {
    if (this.#running < MAX_RUNNING) {
      this.#running += 1
      return
    }
    const isHeld = await new Promise<boolean>((resolve) => this.#lanes[lane].add(source, resolve))
    if (isHeld) return
    throw new ApiError(503, 'busy', 'Too many logins at once', {
      headers: { 'Retry-After': '1' },
    })
  }

  /** Passes the slot to the next waiting login, of the two lanes in turn, or frees it. */
  #leave(): void {
    const other: Lane = this.#lastLane === 'staff' ? 'customers' : 'staff'
    for (const lane of [other, this.#lastLane]) {
      const next = this.#lanes[lane].next()
      if (next === undefined) continue
      this.#lastLane = lane
      return next(true)
    }
    this.#running -= 1
  }
}

/** False: there is no room any more. */
type AdmitCallback = (isHeld: boolean) => void

/** Addresses have their turn one after another, however many logins each of them sends. */
class WaitingLane {
  readonly #bySource = new Map<string, AdmitCallback[]>()
  #size = 0

  add(source: string, waiting: AdmitCallback): void {
    const own = this.#bySource.get(source) ?? []
    if (own.length >= MAX_OF_ADDRESS) return waiting(false)
    // Another address that waits with several gives way to one that waits with none.
    if (this.#size >= MAX_WAITING && !(own.length === 0 && this.#giveWay())) return waiting(false)
    own.push(waiting)
    this.#size += 1
    this.#bySource.set(source, own)
  }

  next(): AdmitCallback | undefined {
    for (const [source, own] of this.#bySource) {
      const first = own.shift()
      this.#bySource.delete(source)
      if (own.length > 0) this.#bySource.set(source, own)
      if (first === undefined) continue
      this.#size -= 1
      return first
    }
    return undefined
  }

  #giveWay(): boolean {
    for (const own of this.#bySource.values()) {
      if (own.length < 2) continue
      this.#size -= 1
      own.pop()?.(false)
      return true
    }
    return false
  }
}
