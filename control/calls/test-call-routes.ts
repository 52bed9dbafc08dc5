/**
 * `POST /routing/carriers/{id}/test-call`: click-to-call through the gateways of one carrier, for half a minute at most.
 * It is paid for and refused like any call of the extension.
 */
import { requestScope } from '../auth/request-scope.ts'
import { Hono } from 'hono'
import { TEST_CALL_SECONDS } from '../../schema/contracts/calls.ts'
import { admitScope, requires } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { exceeded } from '../auth/rate-limit.ts'
import { RateWindow } from '../auth/rate-window.ts'
import { originateBody, startedOrThrow } from './originate-routes.ts'
import { sourceExtension } from './source-extension.ts'
import { found, idParam } from '../resources/resource-routes.ts'
import { CarrierStore } from '../resources/carriers/carrier-store.ts'
import { recentlyUsed } from '../http/recently-used.ts'

const WINDOW_MS = 60_000
const CALLS_PER_WINDOW = 6
const MAX_WINDOWS = 10_000
/** How long the phones of the extension ring. */
const RING_MS = 30_000

const testCallBody = originateBody.pick({
  source_extension: true,
  destination_number: true,
  domain: true,
  auto_answer: true,
})

export function testCallRoutes({
  store,
  engine,
  now,
  steadyNow,
}: Pick<Platform, 'store' | 'engine' | 'now' | 'steadyNow'>) {
  const carriers = new CarrierStore(store)
  /** By carrier and tenant of the extension. */
  const windows = recentlyUsed<string, RateWindow>(MAX_WINDOWS)
  const count = (key: string): void => {
    const window = windows.get(key) ?? new RateWindow(CALLS_PER_WINDOW, WINDOW_MS)
    windows.set(key, window)
    const time = steadyNow()
    if (!window.admit(time)) throw exceeded(window.opensAt(time) - time)
  }

  return new Hono<ControlEnv>().post(
    '/routing/carriers/:id/test-call',
    requires('calls:originate'),
    (c, next) => {
      admitScope(c.var.principal, 'carriers:read')
      return next()
    },
    validate('param', idParam(carriers.noun)),
    validate('json', testCallBody),
    async (c) => {
      const { principal } = c.var
      const { id } = c.req.valid('param')
      const body = c.req.valid('json')
      found(await carriers.find(requestScope(principal, now), id), carriers.noun)
      const source = await sourceExtension(store, principal, body.source_extension, body.domain)
      count(`${id} ${source.tenantId}`)
      const callUuid = startedOrThrow(
        await engine.originate({
          domain: source.domain,
          extension: source.extension,
          destination: body.destination_number,
          callerNumber: undefined,
          callerName: undefined,
          autoAnswer: body.auto_answer,
          ringMs: RING_MS,
          testedCarrierId: id,
        }),
      )
      const started = viewOf(callUuid)
      c.set('change', { before: null, after: { ...body, ...started } })
      return created(c, `/api/v1/pbx/calls/${callUuid}`, started)
    },
  )
}

const viewOf = (callUuid: string) => ({
  call_uuid: callUuid,
  status: 'originating',
  max_seconds: TEST_CALL_SECONDS,
})

export type TestCallView = ReturnType<typeof viewOf>
