/** The control API in a test that makes resources: who asks, and what the engine was told. */
import {
  openControl,
  type Answer,
  type ControlOptions,
  type RequestOptions,
  type TestControl,
} from './control.ts'

export interface TestResources extends TestControl {
  /** How often the engine was told to read its tables again. */
  readonly reloads: { dispatcher: number; routing: number }
  /** A request with a key that may do everything. */
  call(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer>
  /** The same by a key of this tenant. */
  callAs(tenant: string, method: string, path: string, body?: unknown): Promise<Answer>
}

export async function openResources(options?: ControlOptions): Promise<TestResources> {
  const control = await openControl(options)
  const reloads = { dispatcher: 0, routing: 0 }
  Object.assign(control.engine, { reloadRouting: () => (reloads.routing += 1) })
  Object.assign(control.engine.dispatcher, { reload: () => (reloads.dispatcher += 1) })

  const root = await control.key()
  const keys = new Map<string, string>()
  return {
    ...control,
    reloads,
    call: (method, path, body, options) =>
      control.request(path, { token: root, method, body, ...options }),
    async callAs(tenantSlug, method, path, body) {
      const token =
        keys.get(tenantSlug) ??
        (await control.key({ tenant_scope: 'tenant', tenant_slug: tenantSlug }))
      keys.set(tenantSlug, token)
      return control.request(path, { token, method, body })
    },
  }
}
