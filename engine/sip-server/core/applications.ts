/** The connected applications: which SIP methods each asked for, and which one gets a request. */
import type { AppEvent } from '../application.ts'

/** Which application a request is meant for. */
export type ApplicationRoute = { readonly tag: string } | { readonly uri: string }

const isDetail = (verb: string): boolean => verb.startsWith('cdr:')

interface Application {
  readonly clientId: number
  readonly isInProcess: boolean
  isAuthenticated: boolean
  tags: readonly string[]
  readonly verbs: Set<string>
}

interface RoutingOptions {
  /** Connects to an application. */
  readonly dialOut?: (clientId: number, uri: string) => void
}

export class Applications {
  readonly #options: RoutingOptions
  readonly #applications = new Map<number, Application>()
  /** Applications per verb in the order in which they asked for it. */
  readonly #routes = new Map<string, number[]>()
  /** What waits for an application that this server connects to, until it has authenticated. */
  readonly #held = new Map<number, AppEvent[]>()
  #dialledOut = 0
  #detailRoutes = 0

  constructor(options: RoutingOptions = {}) {
    this.#options = options
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

  /** Connected without a socket: it is told what it reads, and no more. */
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

  /** Keeps what is for an application that has not come yet; false: it is there. */
  hold(clientId: number, event: AppEvent): boolean {
    const held = this.#held.get(clientId)
    held?.push(event)
    return held !== undefined
  }

  /** The application is there: what has waited for it. */
  release(clientId: number): readonly AppEvent[] {
    const held = this.#held.get(clientId) ?? []
    this.#held.delete(clientId)
    return held
  }

  /**
   * Asking twice changes nothing: drachtio-srf repeats all its verbs whenever one is added. One that
   * was connected to for the sake of one request gets no other one.
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
   * The application that gets a new request; without a route, any that asked for its method, in turn.
   * `unwanted`: none asked for the method; `away`: those that it is meant for are not connected.
   */
  choose(method: string, route: ApplicationRoute | undefined): number | 'unwanted' | 'away' {
    if (route !== undefined && 'uri' in route) {
      const clientId = this.reserve()
      this.#options.dialOut?.(clientId, route.uri)
      return clientId
    }
    return this.next(method, route?.tag) ?? (route === undefined ? 'unwanted' : 'away')
  }

  /**
   * The next application for this verb, in turn; with a tag, among those that authenticated with
   * it. Undefined: none wants it.
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
