/** The control API with its resource routes and an OCS on one database. */
import { Ocs } from '../../control/billing/ocs.ts'
import { customerRoutes } from '../../control/billing/customer-routes.ts'
import { rateRoutes } from '../../control/billing/rates/rate-routes.ts'
import { dispatcherRoutes } from '../../control/sbc/dispatcher-routes.ts'
import { routingRoutes } from '../../control/sbc/routing-routes.ts'
import { tenantRoutes } from '../../control/tenants/tenant-routes.ts'
import { openControl, type Answer, type RequestOptions, type TestControl } from './control.ts'
import { ManualTime } from './manual-time.ts'

export interface TestResources extends TestControl {
  readonly ocs: Ocs
  /** How often the engine was told to read its tables again. */
  readonly reloads: { dispatcher: number; routing: number }
  /** A request with a key that may do everything. */
  call(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer>
  /** The same by a key of this tenant. */
  callAs(tenant: string, method: string, path: string, body?: unknown): Promise<Answer>
}

export function openResources(): TestResources {
  const control = openControl()
  const { store, now, randomBytes, engine } = control.deps
  const reloads = { dispatcher: 0, routing: 0 }
  Object.assign(control.engine, { reloadRouting: () => (reloads.routing += 1) })
  Object.assign(control.engine.dispatcher, { reload: () => (reloads.dispatcher += 1) })
  const time = new ManualTime(now())
  const ocs = new Ocs({
    store,
    now,
    schedule: time.schedule,
    unknownCaller: 'deny',
    log: () => undefined,
  })
  const deps = { store, now, engine, randomBytes, ocs, idempotency: control.access.idempotency }
  control.app.route(
    '/api/v1',
    tenantRoutes(deps, () => ocs.reloadCustomers()),
  )
  control.app.route('/api/v1', dispatcherRoutes(deps))
  control.app.route('/api/v1', routingRoutes(deps))
  control.app.route('/api/v1', customerRoutes(deps))
  control.app.route('/api/v1', rateRoutes(deps))

  const root = control.key()
  const keys = new Map<string, string>()
  return {
    ...control,
    ocs,
    reloads,
    call: (method, path, body, options) =>
      control.request(path, { token: root, method, body, ...options }),
    callAs(tenantSlug, method, path, body) {
      const token =
        keys.get(tenantSlug) ?? control.key({ tenant_scope: 'tenant', tenant_slug: tenantSlug })
      keys.set(tenantSlug, token)
      return control.request(path, { token, method, body })
    },
  }
}
