/**
 * Which phones are registered: in memory, as they are stored, those of other nodes of the same database too. What a
 * REGISTER changes holds here at once, and for others when they have read it.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Store } from '../../schema/open.ts'
import { inSlices } from '../../schema/sql/query.ts'
import { BindingFollower, type Notices } from './binding-follower.ts'
import {
  type BindingChange,
  BindingStore,
  type StoredBinding,
  type Written,
} from './binding-store.ts'
import { BindingTable, type Registered } from './binding-table.ts'
import type { Binding } from './bindings.ts'
import { targetOf, type ContactTarget } from './target.ts'

export interface RegistrationsDeps {
  readonly store: Store
  /** The name of this node. */
  readonly node: string
  /** What nodes that share the store tell each other; absent: no other one uses it. */
  readonly notices?: Notices | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  /** Sends something that a NAT takes for traffic; errors are its own. */
  readonly keepAlive: (target: ContactTarget) => void
  /** The phones of an extension are others than before, by what happened on this node. */
  readonly onRegistration: (change: {
    readonly tenantId: number
    readonly domain: string
    readonly extension: string
    readonly contacts: number
  }) => void
  readonly log: Log
}

export class Registrations {
  readonly #deps: RegistrationsDeps
  readonly #store: BindingStore
  readonly #table: BindingTable
  readonly #follower: BindingFollower

  constructor(deps: RegistrationsDeps) {
    const { store, node, now, schedule, keepAlive, log } = deps
    this.#deps = deps
    const onFailure = (error: unknown, waiting: number): void =>
      log('error', 'registrations cannot be stored', { error, waiting })
    this.#store = new BindingStore({ store, node, schedule, onFailure })
    this.#follower = new BindingFollower({
      node,
      now,
      schedule,
      log,
      bindings: this.#store,
      known: () => this.#known(),
      take: (extensionIds, stored) => this.#take(extensionIds, stored),
    })
    this.#table = new BindingTable({
      now,
      schedule,
      isOwn: this.isOwn,
      keepAlive: (binding) => keepAlive(targetOf(binding)),
      onLapsed: (registered) => this.#tell(registered),
      onUnsure: (extensionId) => this.#follower.changed(extensionId),
      onExpired: () => this.#store.removeExpired(now()),
    })
  }

  /** Follows other nodes from now on. */
  follow(): void {
    if (this.#deps.notices) this.#follower.listen(this.#deps.notices)
  }

  /** Takes what is stored instead of what is known, a slice after the other. Resolves with all of it. */
  async load(): Promise<readonly StoredBinding[]> {
    const all: StoredBinding[] = []
    const gone = new Set(this.#known())
    for await (const ids of this.#store.extensionIds()) {
      const stored = await this.#store.loadOf(ids, this.#deps.now())
      this.#take(ids, stored)
      for (const id of ids) gone.delete(id)
      all.push(...stored)
    }
    this.#take([...gone], [])
    return all
  }

  /** Extensions that have bindings. */
  #known(): readonly number[] {
    return [...this.#table.all()].map(({ extensionId }) => extensionId)
  }

  /** Living ones; `domain` in small letters. */
  bindingsOf(domain: string, extension: string): readonly Binding[] {
    return this.#table.bindingsOf(domain, extension)
  }

  /** Of a database that no other node uses, every binding is; this one may have had another name. */
  readonly isOwn = ({ node }: Binding): boolean =>
    !this.#deps.store.statements.isShared || node === this.#deps.node

  /**
   * A REGISTER has changed the bindings of an extension to these: they hold here at once. Resolves when they are
   * durable, or will not be: then they do not hold any more.
   */
  async change(
    registered: Registered,
    change: Omit<BindingChange, 'extensionId'>,
  ): Promise<Written> {
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
    else if (bindings.length !== before.length) this.#tell(registered)
    return written
  }

  /**
   * Its phones are not reachable any more, here and at other nodes. With `contact`, this one phone until it registers
   * again. Resolves when that is stored, or after a bounded time, with false when there is none.
   */
  async end(domain: string, extension: string, contact?: string): Promise<boolean> {
    const registered = this.#table.find(domain, extension)
    if (registered === undefined) return false
    const { extensionId, bindings } = registered
    const left = bindings.filter((each) => contact !== undefined && each.contact !== contact)
    if (left.length === bindings.length) return false
    const ended = { ...registered, bindings: left }
    this.#set(ended)
    this.#tell(ended)
    await (contact === undefined
      ? this.#store.removeAll(extensionId)
      : this.#store.remove(extensionId, contact))
    return true
  }

  /**
   * Ends what phones have registered here with a password that is not good any more. What they have registered at
   * another node ends there, and is read again here. Resolves when that is stored, or after a bounded time.
   *
   * @param extensionIds absent: all.
   */
  async endOutdated(
    isOutdated: (registered: Registered) => boolean,
    extensionIds?: readonly number[],
  ): Promise<void> {
    const ends: Promise<unknown>[] = []
    for await (const ids of inSlices(extensionIds ?? this.#known()))
      for (const registered of ids.flatMap((id) => this.#table.of(id) ?? []).filter(isOutdated)) {
        const { extensionId, bindings } = registered
        this.#drop(registered)
        if (bindings.some(this.isOwn)) ends.push(this.#store.removeOwn(extensionId))
      }
    await Promise.all(ends)
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

  /** Of this node. */
  stats(): ReturnType<BindingTable['stats']> {
    return this.#table.stats()
  }

  async stop(): Promise<void> {
    this.#table.stop()
    this.#follower.stop()
    await this.flush()
  }

  /** Without its bindings of this node; those of others are read again. */
  #drop(registered: Registered): void {
    const { bindings, extensionId } = registered
    const dropped = { ...registered, bindings: [] }
    this.#set(dropped)
    if (bindings.some(this.isOwn)) this.#tell(dropped)
    if (!bindings.every(this.isOwn)) this.#follower.changed(extensionId)
  }

  /** This node changes the bindings of an extension. */
  #set(registered: Registered): void {
    this.#follower.writing(registered.extensionId)
    this.#table.set(registered)
  }

  /** `stored`: all bindings of these extensions, and of others. */
  #take(extensionIds: readonly number[], stored: readonly StoredBinding[]): void {
    const found = new Map<number, Registered>()
    for (const { binding, ...home } of stored) {
      const bindings = found.get(home.extensionId)?.bindings ?? []
      found.set(home.extensionId, { ...home, bindings: [...bindings, binding] })
    }
    for (const id of extensionIds) if (!found.has(id)) this.#table.forget(id)
    for (const registered of found.values()) this.#table.set(registered)
  }

  #tell({ tenantId, domain, extension, bindings }: Registered): void {
    this.#deps.onRegistration({ tenantId, domain, extension, contacts: bindings.length })
  }
}
