/**
 * How many requests were answered, by route and class of status. A request costs two look-ups: its
 * route is noted before the handler runs, its status when the answer is out.
 */
import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { ControlEnv } from '../http/control-env.ts'
import { answerOf } from '../http/request-head.ts'
import type { Step } from '../middleware/in-order.ts'

export interface RequestCount {
  readonly method: string
  /** As routed, such as `/api/v1/users/:id`; `none`: no route. */
  readonly route: string
  readonly statusClass: '1xx' | '2xx' | '3xx' | '4xx' | '5xx'
  readonly count: number
}

const NO_ROUTE = 'none'
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

class RouteRequests {
  readonly counts = [0, 0, 0, 0, 0]

  add(status: number): void {
    const index = Math.floor(status / 100) - 1
    this.counts[index] = (this.counts[index] ?? 0) + 1
  }
}

export class ApiRequests {
  /** By method, then route: as many as the program has routes. */
  readonly #methods = new Map<string, Map<string, RouteRequests>>(
    [...methods, NO_ROUTE].map((method) => [method, new Map<string, RouteRequests>()]),
  )

  /** The first step of a request. */
  note(): Step {
    return (c) => {
      const answer = answerOf(c)
      if (answer === undefined) return
      // A path that is a route's own, without parameters, is in the table under its name.
      const known = this.#methods.get(c.req.method)?.get(c.req.path)
      answer.count = known ?? this.#routeOf(c.req.method, pathOf(c))
    }
  }

  /** What never becomes a request of a route, such as one that is cut off (400, 408, 431). */
  get unrouted(): { add(status: number): void } {
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
    const added = new RouteRequests()
    routes.set(path, added)
    return added
  }
}

/** The first route that matches is the one that answers; what stands in front of all is none. */
const pathOf = (c: Context<ControlEnv>): string =>
  matchedRoutes(c).find(({ path }) => path !== '/*')?.path ?? NO_ROUTE
