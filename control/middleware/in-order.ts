import type { Context, MiddlewareHandler } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'

/** A step that runs for every request before its route. Throws to reject. */
export type Step = (c: Context<ControlEnv>) => void

/** Steps that CORS preflights skip: they carry no credential. */
export const butPreflight =
  (...steps: readonly Step[]): Step =>
  (c) => {
    if (c.req.method === 'OPTIONS') return
    for (const step of steps) step(c)
  }

/** Runs the steps as one middleware: separate ones would cost another 0.8 µs of promises each. */
export const inOrder =
  (...steps: readonly Step[]): MiddlewareHandler<ControlEnv> =>
  (c, next) => {
    for (const step of steps) step(c)
    return next()
  }
