/** The applications that are connected: who has asked for which requests. */
import type { AppEvent } from '../application.ts'
import type { ApplicationRoute, Outbox } from './outbox.ts'

const isDetail = (verb: string): boolean => verb.startsWith('cdr:')

interface Application {
  readonly clientId: number
  readonly isInProcess: boolean
  isAuthenticated: boolean
  tags: readonly string[]
  readonly verbs: Set<string>
}

export class Applications {
  readonly #outbox: Outbox
  readonly #applications = new Map<number, Application>()
  /** Applications per verb in the order in which they asked for it. */
  readonly #routes = new Map<string, number[]>()
  /** Events for applications that this server connects to, until they have authenticated. */
  readonly #held = new Map<number, AppEvent[]>()
  #dialledOut = 0
  #detailRoutes = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  connected(clientId: number, isInProcess: boolean): void {
    this.#applications.set(clientId, {
      clientId,
      isInProcess,
      isAuthenticated: false,
      tags: [],
      verbs: new Set(),
    })
  }

  disconnected(clientId: number): void {
    const application = this.#applications.get(clientId)
    for (const verb of application?.verbs ?? []) this.removeRoute(clientId, verb)
    this.#applications.delete(clientId)
    this.#held.delete(clientId)
  }

  authenticate(clientId: number, tags: readonly string[]): void {
    const application = this.#applications.get(clientId)
    if (!application) return
    application.isAuthenticated = true
    application.tags = tags
  }

  /** Connected without a socket. */
  isInProcess(clientId: number): boolean {
    return this.#applications.get(clientId)?.isInProcess ?? false
  }

  isAuthenticated(clientId: number): boolean {
    return this.#applications.get(clientId)?.isAuthenticated ?? false
  }

  /**
   * An id for an application that this server will connect to, for one request. Ids of those that
   * connect by themselves are positive, these are negative.
   */
  reserve(): number {
    this.#dialledOut += 1
    this.#held.set(-this.#dialledOut, [])
    return -this.#dialledOut
  }

  /** Holds an event for an application that has not authenticated yet; false: it has. */
  hold(clientId: number, event: AppEvent): boolean {
    const held = this.#held.get(clientId)
    held?.push(event)
    return held !== undefined
  }

  /** Returns the events that have waited for the application. */
  release(clientId: number): readonly AppEvent[] {
    const held = this.#held.get(clientId) ?? []
    this.#held.delete(clientId)
    return held
  }

  /**
   * Asking twice changes nothing: drachtio-srf repeats all its verbs whenever one is added. One
   * that was connected to for the sake of one request gets no other one.
   */
  addRoute(clientId: number, verb: string): void {
    const application = this.#applications.get(clientId)
    if (!application || application.verbs.has(verb) || clientId < 0) return
    application.verbs.add(verb)
    if (isDetail(verb)) this.#detailRoutes += 1
    const clients = this.#routes.get(verb)
    if (clients) clients.push(clientId)
    else this.#routes.set(verb, [clientId])
  }

  removeRoute(clientId: number, verb: string): void {
    const isRoute = this.#applications.get(clientId)?.verbs.delete(verb) === true
    if (isRoute && isDetail(verb)) this.#detailRoutes -= 1
    const clients = (this.#routes.get(verb) ?? []).filter((other) => other !== clientId)
    if (clients.length === 0) this.#routes.delete(verb)
    else this.#routes.set(verb, clients)
  }

  /**
   * The application that gets a new request; without a route, any that asked for its method, in
   * turn. `unwanted`: none asked for the method; `not-connected`: those that it is meant for are
   * not connected.
   */
  choose(
    method: string,
    route: ApplicationRoute | undefined,
  ): number | 'unwanted' | 'not-connected' {
    if (route !== undefined && 'uri' in route) {
      const clientId = this.reserve()
      this.#outbox.push({ kind: 'dial-out', clientId, uri: route.uri })
      return clientId
    }
    return this.next(method, route?.tag) ?? (route === undefined ? 'unwanted' : 'not-connected')
  }

  /**
   * The next application for this verb, in turn; with a tag, among those that authenticated with
   * it. Undefined: no application asked for it.
   * @param verb a SIP method, or `cdr:…`
   */
  next(verb: string, tag?: string): number | undefined {
    const clients = this.#routes.get(verb.toLowerCase())
    if (clients === undefined) return undefined
    if (tag !== undefined) return this.#nextTagged(clients, tag)
    const first = clients.shift()
    if (first === undefined) return undefined
    clients.push(first)
    return first
  }

  /** Whether any asked for `cdr:…`. */
  get wantDetails(): boolean {
    return this.#detailRoutes > 0
  }

  /** Methods that some application wants, upper case, for Allow. */
  methods(): readonly string[] {
    return [...this.#routes.keys()]
      .filter((verb) => !isDetail(verb))
      .map((verb) => verb.toUpperCase())
  }

  get size(): number {
    return this.#applications.size
  }

  #nextTagged(clients: number[], tag: string): number | undefined {
    const at = clients.findIndex((id) => this.#applications.get(id)?.tags.includes(tag))
    clients.push(...clients.splice(at === -1 ? clients.length : at, 1))
    return at === -1 ? undefined : clients.at(-1)
  }
}
