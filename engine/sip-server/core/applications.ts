/** The connected applications: who asked for which SIP method, and whose turn it is. */

interface Application {
  readonly clientId: number
  readonly isInProcess: boolean
  isAuthenticated: boolean
  tags: readonly string[]
  readonly verbs: Set<string>
}

export class Applications {
  readonly #applications = new Map<number, Application>()
  /** Applications per verb in the order in which they asked for it. */
  readonly #routes = new Map<string, number[]>()

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

  /** Asking twice changes nothing: drachtio-srf repeats all its verbs whenever one is added. */
  addRoute(clientId: number, verb: string): void {
    const application = this.#applications.get(clientId)
    if (!application || application.verbs.has(verb)) return
    application.verbs.add(verb)
    const clients = this.#routes.get(verb)
    if (clients) clients.push(clientId)
    else this.#routes.set(verb, [clientId])
  }

  removeRoute(clientId: number, verb: string): void {
    this.#applications.get(clientId)?.verbs.delete(verb)
    const clients = (this.#routes.get(verb) ?? []).filter((other) => other !== clientId)
    if (clients.length === 0) this.#routes.delete(verb)
    else this.#routes.set(verb, clients)
  }

  /** The next application for a new request of this method, in turn; undefined: nobody wants it. */
  next(method: string): number | undefined {
    const clients = this.#routes.get(method.toLowerCase())
    const first = clients?.shift()
    if (first === undefined) return undefined
    clients?.push(first)
    return first
  }

  /** Methods that some application wants, upper case, for Allow. */
  methods(): readonly string[] {
    return [...this.#routes.keys()]
      .filter((verb) => !verb.startsWith('cdr:'))
      .map((verb) => verb.toUpperCase())
  }

  get size(): number {
    return this.#applications.size
  }
}
