import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import { answerOf, type ControlEnv, type Step } from '../../http/control-env.ts'

interface RequestCount {
  readonly method: string
  /** Path as it is routed, such as `/api/v1/users/:id`, or `none`. */
  readonly route: string
  readonly statusClass: '1xx' | '2xx' | '3xx' | '4xx' | '5xx'
  readonly count: number
}

const NO_ROUTE = 'none'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const

const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

class RouteRequests {
  /** Method and path pattern. */
  readonly route: string
  readonly counts = [0, 0, 0, 0, 0]

  constructor(route: string) {
    this.route = route
  }

  add(status: number): void {
    const index = Math.floor(status / 100) - 1
    this.counts[index] = (this.counts[index] ?? 0) + 1
  }
}

/**
 * Counts responses by route and status class. A request costs two look-ups: its route is noted
 * before the handler runs, its status when the response is sent.
 */
export class ApiRequests {
  /** The counts are keyed by method, then by route; there are as many as routes. */
  readonly #methods = new Map<string, Map<string, RouteRequests>>(
    [...methods, NO_ROUTE].map((method) => [method, new Map<string, RouteRequests>()]),
  )

  /** Runs before every other step. */
  note(): Step {
    return (c) => {
      // A path that is itself a route, without parameters, is in the table under its name.
      const known = this.#methods.get(c.req.method)?.get(c.req.path)
      answerOf(c).count = known ?? this.#routeOf(c.req.method, pathOf(c))
    }
  }

  /** Counts what never becomes a request of a route, such as a rejected one (400, 408, 431). */
  get unrouted(): { readonly route: string; add(status: number): void } {
    return this.#routeOf(NO_ROUTE, NO_ROUTE)
  }

  list(): readonly RequestCount[] {
    return [...this.#methods].flatMap(([method, routes]) =>
      [...routes].flatMap(([route, { counts }]) =>
        classes
          .map((statusClass, index) => ({ method, route, statusClass, count: counts[index] ?? 0 }))
          .filter(({ count }) => count > 0),
      ),
    )
  }

  #routeOf(method: string, path: string): RouteRequests {
    const routes = this.#methods.get(method)
    if (routes === undefined) return this.#routeOf(NO_ROUTE, path)
    const known = routes.get(path)
    if (known !== undefined) return known
    const added = new RouteRequests(path === NO_ROUTE ? NO_ROUTE : `${method} ${path}`)
    routes.set(path, added)
    return added
  }
}

/** The first matching route responds; middleware mounted on every path does not count. */
const pathOf = (c: Context<ControlEnv>): string =>
  matchedRoutes(c).find(({ path }) => path !== '/*')?.path ?? NO_ROUTE
