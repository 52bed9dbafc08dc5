/**
 * Registered phones in memory, as they are stored, those of other instances of the same database
 * too. The change of a REGISTER takes effect here at once, and at other instances when they have
 * read it.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/storage/store.ts'
import { inSlices } from '../../schema/sql/query.ts'
import {
  type BindingChange,
  BindingStore,
  type StoredBinding,
  type WriteResult,
} from './binding-store.ts'
import { BindingIndex, type RegisteredExtension } from './binding-table.ts'
import {
  type Binding,
  type ContactTarget,
  isBoundToConnection,
  type BindingSource,
  targetOf,
} from './bindings.ts'
import { BindingFollower, type BindingNotices } from './binding-follower.ts'

export interface RegistrationsDeps {
  readonly store: Store
  /** The name of this instance. */
  readonly instance: string
  /** Notices between instances that share the store; absent: no other instance uses it. */
  readonly notices?: BindingNotices | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Sends something that a NAT takes for traffic; errors are its own. */
  readonly keepAlive: (target: ContactTarget) => void
  /** The phones of an extension have changed, by an event on this instance. */
  readonly onRegistration: (change: {
    readonly tenantId: number
    readonly domain: string
    readonly extension: string
    readonly contacts: number
  }) => void
  /** Whether lost phones are kept for webhooks (`LostRegistrations`); absent: they are not. */
  readonly keepsLost?: (() => boolean) | undefined
  readonly log: Log
}

export class Registrations {
  readonly #deps: RegistrationsDeps
  readonly #store: BindingStore
  readonly #table: BindingIndex
  readonly #follower: BindingFollower
  #isStopped = false

  constructor(deps: RegistrationsDeps) {
    const { store, instance, now, schedule, keepAlive, keepsLost, log } = deps
    this.#deps = deps
    const onFailure = (error: unknown, waiting: number): void =>
      log('error', 'registrations cannot be stored', { error, waiting })
    this.#store = new BindingStore({ store, instance, schedule, onFailure, keepsLost })
    this.#follower = new BindingFollower({
      instance,
      now,
      schedule,
      log,
      bindings: this.#store,
      known: () => this.#known(),
      take: (extensionIds, stored) => this.#take(extensionIds, stored),
    })
    this.#table = new BindingIndex({
      now,
      schedule,
      isOwn: this.isOwn,
      keepAlive: (binding) => keepAlive(targetOf(binding)),
      onLapsed: (registered) => this.#report(registered),
      onUnsure: (extensionId) => this.#follower.changed(extensionId),
      onExpired: () => this.#store.removeExpired(now()),
    })
  }

  /** Follows other instances, from when it resolves on. */
  async follow(): Promise<void> {
    if (this.#deps.notices) await this.#follower.listen(this.#deps.notices)
  }

  /**
   * Replaces all bindings in memory by the stored ones, a slice at a time, and tells `onStored` of
   * each. `isStart`: no connection of this instance is there yet, and no phone is kept alive before
   * all are read.
   */
  async load(onStored: (stored: StoredBinding) => void, isStart = false): Promise<void> {
    if (isStart) this.#table.hold()
    const gone = new Set(this.#known())
    for await (const ids of this.#store.extensionIds()) {
      const [first = 0] = ids
      const stored = await this.#store.loadBetween(first, ids.at(-1) ?? first, this.#deps.now())
      for (const each of stored) onStored(each)
      const closed = stored.filter(({ binding }) => isStart && this.#isOfLastProcess(binding))
      for (const { extensionId, binding } of closed)
        this.#store.removeClosed(extensionId, binding, this.#deps.now())
      this.#take(
        ids,
        stored.filter((each) => !closed.includes(each)),
      )
      for (const id of ids) gone.delete(id)
    }
    this.#take([...gone], [])
    if (isStart) this.#table.release()
  }

  /** RFC 5626 §5.3: its connection has ended with the process that it led to. */
  #isOfLastProcess(binding: Binding): boolean {
    return isBoundToConnection(binding) && this.isOwn(binding)
  }

  /** Extensions that have bindings. */
  #known(): readonly number[] {
    return [...this.#table.all()].map(({ extensionId }) => extensionId)
  }

  /** Living ones; `domain` in small letters. */
  bindingsOf(domain: string, extension: string): readonly Binding[] {
    return this.#table.bindingsOf(domain, extension)
  }

  /**
   * In a database that no other instance uses, every binding is: this instance may have had another
   * name.
   */
  readonly isOwn = ({ holder }: Binding): boolean =>
    this.#deps.notices === undefined || holder === this.#deps.instance

  /**
   * Sets the bindings of an extension as a REGISTER has changed them. They take effect here at
   * once. Resolves when they are durable, or will not be: then the former ones are back.
   */
  async change(
    registered: RegisteredExtension,
    change: Omit<BindingChange, 'extensionId'>,
  ): Promise<WriteResult> {
    const { domain, extension, extensionId, bindings } = registered
    const before = this.bindingsOf(domain, extension)
    this.#set(registered)
    const written = await this.#store.write({ extensionId, ...change })
    if (written === 'late') {
      if (this.#table.find(domain, extension)?.bindings === bindings)
        this.#set({ ...registered, bindings: before })
      // A server that fell silent may have stored them.
      this.#follower.changed(extensionId)
    } else if (written === 'gone') this.#drop(registered)
    else if (bindings.length !== before.length)
      // Its connection may have closed since.
      this.#report({ ...registered, bindings: this.bindingsOf(domain, extension) })
    return written
  }

  /**
   * Its phones are not reachable any more, here and at other instances. With `contact`, this one
   * phone until it registers again. Resolves when that is stored, or after a bounded time, with
   * false when there is none.
   */
  async end(domain: string, extension: string, contact?: string): Promise<boolean> {
    const registered = this.#table.find(domain, extension)
    if (registered === undefined) return false
    const { extensionId, bindings } = registered
    const remaining = bindings.filter((each) => contact !== undefined && each.contact !== contact)
    if (remaining.length === bindings.length) return false
    const ended = { ...registered, bindings: remaining }
    this.#set(ended)
    this.#report(ended)
    await (contact === undefined
      ? this.#store.removeAll(extensionId)
      : this.#store.remove(extensionId, contact))
    return true
  }

  /**
   * A connection to this instance is closed. The phones that have registered over it are not
   * reached by any other: the registrar removes the bindings of flows that have failed (RFC 5626
   * §5.3, §6).
   */
  connectionClosed(source: BindingSource): void {
    if (this.#isStopped) return
    for (const registered of this.#table.on(source)) {
      const { extensionId, bindings } = registered
      const closed = bindings.filter(
        (binding) =>
          isBoundToConnection(binding) && this.isOwn(binding) && isSame(binding.source, source),
      )
      const ended = { ...registered, bindings: bindings.filter((each) => !closed.includes(each)) }
      this.#set(ended)
      for (const binding of closed) this.#store.removeClosed(extensionId, binding, this.#deps.now())
      this.#report(ended)
    }
  }

  /**
   * Ends bindings of this instance whose password has changed. Those of another instance end there,
   * and are read again here. Resolves when that is stored, or after a bounded time.
   *
   * @param extensionIds absent: all.
   */
  async endOutdated(
    isOutdated: (registered: RegisteredExtension) => boolean,
    extensionIds?: readonly number[],
  ): Promise<void> {
    const ends: Promise<unknown>[] = []
    for await (const ids of inSlices(extensionIds ?? this.#known()))
      for (const registered of ids.flatMap((id) => this.#table.of(id) ?? []).filter(isOutdated)) {
        const { extensionId, bindings } = registered
        this.#drop(registered)
        if (bindings.some(this.isOwn)) ends.push(this.#removeOwn(extensionId))
      }
    await Promise.all(ends)
  }

  #removeOwn(extensionId: number): Promise<WriteResult> {
    const { notices, instance } = this.#deps
    return this.#store.removeAll(extensionId, notices === undefined ? undefined : instance)
  }

  get isOverloaded(): boolean {
    return this.#store.isOverloaded
  }

  flushUnlessFailing(): void {
    this.#store.flushUnlessFailing()
  }

  /** Writes what waits. */
  async flush(): Promise<void> {
    await this.#store.flush()
  }

  /** Counts the registrations that this instance keeps alive. */
  stats(): ReturnType<BindingIndex['stats']> {
    return this.#table.stats()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#table.stop()
    this.#follower.stop()
    await this.flush()
  }

  /** Removes its bindings from memory; those of other instances are read again. */
  #drop(registered: RegisteredExtension): void {
    const { bindings, extensionId } = registered
    const dropped = { ...registered, bindings: [] }
    this.#set(dropped)
    if (bindings.some(this.isOwn)) this.#report(dropped)
    if (!bindings.every(this.isOwn)) this.#follower.changed(extensionId)
  }

  /** This instance changes the bindings of an extension. */
  #set(registered: RegisteredExtension): void {
    this.#follower.writing(registered.extensionId)
    this.#table.set(registered)
  }

  /** `stored`: all bindings of these extensions, and of others. */
  #take(extensionIds: readonly number[], stored: readonly StoredBinding[]): void {
    const found = new Map<number, RegisteredExtension>()
    for (const { binding, ...home } of stored) {
      const bindings = found.get(home.extensionId)?.bindings ?? []
      found.set(home.extensionId, { ...home, bindings: [...bindings, binding] })
    }
    for (const id of extensionIds) if (!found.has(id)) this.#table.forget(id)
    for (const registered of found.values()) this.#table.set(registered)
  }

  #report({ tenantId, domain, extension, bindings }: RegisteredExtension): void {
    this.#deps.onRegistration({ tenantId, domain, extension, contacts: bindings.length })
  }
}

const isSame = (one: BindingSource, other: BindingSource): boolean =>
  one.port === other.port && one.address === other.address && one.protocol === other.protocol
