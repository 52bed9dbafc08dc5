/**
 * The bindings of all extensions in memory: found by domain and number, dropped when they expire,
 * and the phones behind NAT kept reachable. One timer serves all of it, and only while needed.
 */
import type { Schedule } from '../../schema/clock.ts'
import {
  type Binding,
  CHECK_AHEAD_MS,
  isBoundToConnection,
  needsKeepAlive,
  type BindingSource,
} from './bindings.ts'

/** An extension that has bindings. */
export interface RegisteredExtension {
  readonly domain: string
  readonly extension: string
  readonly extensionId: number
  readonly tenantId: number
  /** The digest secret of its last REGISTER: bindings end when the password changes. */
  readonly secret: string
  readonly bindings: readonly Binding[]
}

export interface BindingTableDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Whether the way to the phone is on this instance. */
  readonly isOwn: (binding: Binding) => boolean
  /** Sends something that makes a NAT keep its mapping; errors are its own. */
  readonly keepAlive: (binding: Binding) => void
  /** Some of this instance's bindings of it have expired; it has those that are left. */
  readonly onLapsed: (registered: RegisteredExtension) => void
  /** Bindings of other instances expire soon, or have expired, unless they were refreshed there. */
  readonly onUnsure: (extensionId: number) => void
  /** Called at most once a minute, when something has expired. */
  readonly onExpired: () => void
}

interface Entry extends RegisteredExtension {
  /** The second of its next check. */
  readonly due: number
  readonly slot: number
  /** Bindings of phones behind NAT, whose ways this instance keeps open. */
  readonly keptAlive: readonly Binding[]
}

const none: readonly Binding[] = []

const TICK_MS = 1_000
/** NATs forget a silent UDP mapping after 30 s and more (RFC 4787 wants 2 min, few give it). */
const KEEP_ALIVE_SECONDS = 25
const CLEANUP_SECONDS = 60

export class BindingIndex {
  readonly #deps: BindingTableDeps
  readonly #entries = new Map<string, Entry>()
  /** Keys of the entries, by the id of the extension. */
  readonly #keys = new Map<number, string>()
  readonly #due = new Map<number, Set<string>>()
  /** Entries with phones behind NAT, spread over the interval in which each gets its turn. */
  readonly #slots: readonly Set<string>[] = Array.from(
    { length: KEEP_ALIVE_SECONDS },
    () => new Set<string>(),
  )
  /** Keys of entries by the connections of this instance that their phones have registered over. */
  readonly #connections = new Map<string, Set<string>>()
  #nextSlot = 0
  #second: number
  #expiredSince: number | undefined
  #isHeld = false
  /** Numbers of extensions and bindings that this instance keeps alive. */
  readonly #own = { extensions: 0, bindings: 0 }
  #cancelTick: (() => void) | undefined

  constructor(deps: BindingTableDeps) {
    this.#deps = deps
    this.#second = secondOf(deps.now())
  }

  find(domain: string, extension: string): RegisteredExtension | undefined {
    return this.#entries.get(keyOf(domain, extension))
  }

  of(extensionId: number): RegisteredExtension | undefined {
    const key = this.#keys.get(extensionId)
    return key === undefined ? undefined : this.#entries.get(key)
  }

  /** Those with a phone that has registered at this instance over this connection. */
  on(source: BindingSource): readonly RegisteredExtension[] {
    const keys = this.#connections.get(connectionKey(source)) ?? []
    return [...keys].flatMap((key) => this.#entries.get(key) ?? [])
  }

  /** Living ones; none for an extension that is not registered. */
  bindingsOf(domain: string, extension: string): readonly Binding[] {
    const bindings = this.find(domain, extension)?.bindings ?? []
    const now = this.#deps.now()
    return bindings.filter(({ expiresAt }) => expiresAt > now)
  }

  /** Replaces the bindings of an extension; without bindings it is removed. */
  set(registered: RegisteredExtension): void {
    const key = keyOf(registered.domain, registered.extension)
    const known = this.#keys.get(registered.extensionId)
    if (known !== undefined && known !== key) this.#remove(known)
    const slot = this.#remove(key)?.slot ?? this.#nextSlot++ % KEEP_ALIVE_SECONDS
    const { bindings } = registered
    if (bindings.length === 0) return
    if (this.#cancelTick === undefined && !this.#isHeld) this.#second = secondOf(this.#deps.now())
    const first = Math.min(...bindings.map((binding) => this.#dueOf(binding)))
    const due = Math.max(first, this.#second + 1)
    const keptAlive = bindings.some(this.#isKeptAlive) ? bindings.filter(this.#isKeptAlive) : none
    this.#entries.set(key, { ...registered, due, slot, keptAlive })
    this.#keys.set(registered.extensionId, key)
    this.#count(bindings, 1)
    for (const binding of bindings)
      if (this.#isOnOwnConnection(binding))
        addTo(this.#connections, connectionKey(binding.source), key)
    addTo(this.#due, due, key)
    if (keptAlive.length > 0) this.#slots[slot]?.add(key)
    this.#begin()
  }

  #begin(): void {
    if (!this.#isHeld) this.#cancelTick ??= this.#deps.schedule(this.#tick, TICK_MS)
  }

  /** Nothing expires and no phone is kept alive until `release`: a start has other things to do. */
  hold(): void {
    this.#isHeld = true
    this.#second = secondOf(this.#deps.now())
  }

  release(): void {
    this.#isHeld = false
    if (this.#entries.size > 0) this.#begin()
  }

  /** Removes an extension with its bindings. */
  forget(extensionId: number): void {
    const key = this.#keys.get(extensionId)
    if (key !== undefined) this.#remove(key)
  }

  all(): IterableIterator<RegisteredExtension> {
    return this.#entries.values()
  }

  /** Counts what this instance keeps: registered extensions, bindings, extensions kept alive. */
  stats(): { readonly extensions: number; readonly bindings: number; readonly keptAlive: number } {
    let keptAlive = 0
    for (const slot of this.#slots) keptAlive += slot.size
    return { ...this.#own, keptAlive }
  }

  stop(): void {
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  #remove(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#keys.delete(entry.extensionId)
    this.#count(entry.bindings, -1)
    for (const binding of entry.bindings)
      if (this.#isOnOwnConnection(binding))
        removeFrom(this.#connections, connectionKey(binding.source), key)
    removeFrom(this.#due, entry.due, key)
    this.#slots[entry.slot]?.delete(key)
    return entry
  }

  #count(bindings: readonly Binding[], by: 1 | -1): void {
    let own = 0
    for (const binding of bindings) if (this.#deps.isOwn(binding)) own += 1
    this.#own.bindings += own * by
    if (own > 0) this.#own.extensions += by
  }

  readonly #tick = (): void => {
    const present = secondOf(this.#deps.now())
    // A process that stood still sends each keep-alive once, not once for every second missed.
    const from = Math.max(this.#second + 1, present - KEEP_ALIVE_SECONDS + 1)
    this.#expire(present)
    for (let second = from; second <= present; second++) this.#keepAlive(second)
    if (this.#expiredSince !== undefined && present - this.#expiredSince >= CLEANUP_SECONDS) {
      this.#expiredSince = undefined
      this.#deps.onExpired()
    }
    const isNeeded = this.#entries.size > 0 || this.#expiredSince !== undefined
    this.#cancelTick = isNeeded ? this.#deps.schedule(this.#tick, TICK_MS) : undefined
  }

  #expire(present: number): void {
    const now = this.#deps.now()
    while (this.#second < present) {
      // First: an entry that is checked now is due again in a later second.
      this.#second += 1
      for (const key of [...(this.#due.get(this.#second) ?? [])]) {
        const entry = this.#entries.get(key)
        if (entry === undefined) continue
        const living = entry.bindings.filter(({ expiresAt }) => expiresAt > now)
        const remaining = { ...entry, bindings: living }
        this.set(remaining)
        if (entry.bindings.some((binding) => this.#isUnsure(binding, now)))
          this.#deps.onUnsure(entry.extensionId)
        const gone = entry.bindings.filter((binding) => !living.includes(binding))
        if (!gone.some(this.#deps.isOwn)) continue
        this.#expiredSince ??= present
        this.#deps.onLapsed(remaining)
      }
    }
  }

  #isUnsure(binding: Binding, now: number): boolean {
    return !this.#deps.isOwn(binding) && binding.expiresAt - now <= CHECK_AHEAD_MS + TICK_MS
  }

  /**
   * The second of the next check: after the binding expires; for one of another instance also a
   * while before.
   */
  #dueOf(binding: Binding): number {
    const before = secondOf(binding.expiresAt - CHECK_AHEAD_MS)
    if (before > this.#second && !this.#deps.isOwn(binding)) return before
    return secondOf(binding.expiresAt) + 1
  }

  readonly #isKeptAlive = (binding: Binding): boolean =>
    needsKeepAlive(binding) && this.#deps.isOwn(binding)

  readonly #isOnOwnConnection = (binding: Binding): boolean =>
    isBoundToConnection(binding) && this.#deps.isOwn(binding)

  #keepAlive(second: number): void {
    for (const key of this.#slots[second % KEEP_ALIVE_SECONDS] ?? [])
      for (const binding of this.#entries.get(key)?.keptAlive ?? none) this.#deps.keepAlive(binding)
  }
}

const secondOf = (ms: number): number => Math.floor(ms / 1_000)

function addTo<Index, Key>(sets: Map<Index, Set<Key>>, index: Index, key: Key): void {
  const others = sets.get(index)
  if (others) others.add(key)
  else sets.set(index, new Set([key]))
}

function removeFrom<Index, Key>(sets: Map<Index, Set<Key>>, index: Index, key: Key): void {
  const others = sets.get(index)
  others?.delete(key)
  if (others?.size === 0) sets.delete(index)
}

const connectionKey = ({ protocol, address, port }: BindingSource): string =>
  `${protocol} ${address} ${port}`

/** A domain holds no blank. */
const keyOf = (domain: string, extension: string): string => `${domain} ${extension}`
