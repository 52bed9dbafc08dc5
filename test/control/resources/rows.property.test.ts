/**
 * The life of a row of each resource: its address, its entries in the list of changes, and its end.
 */
import { expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { openToolRig } from '../../support/tools-rig.ts'

const phone = {
  extension: '101',
  domain: 'acme.example',
  display_name: 'One',
  password: 'x9Kd72hQw1',
}

/** The collection, a body, a change of it, and how the list of changes calls its rows. */
const resources: readonly [path: string, body: object, change: object, kind: string][] = [
  ['/customers', { name: 'nova', numbers: ['4930999'] }, { max_cps: 3 }, 'customer'],
  [
    '/routing/carriers',
    { name: 't', gateways: [{ host: '10.9.9.9' }] },
    { max_calls: 7 },
    'carrier',
  ],
  [
    '/outbound-routes',
    { name: 'r', mode: 'block', prefix: '9' },
    { prefix: '99' },
    'outbound_route',
  ],
  ['/inbound-routes', { name: 'r', set_id: 2 }, { priority: 3 }, 'inbound_route'],
  ['/rate-plans', { name: 'p' }, { decimals: 2 }, 'rate_plan'],
  [
    '/rates',
    { rate_plan: 'acme plan', prefix: '1', rate_per_minute: '1' },
    { connect_fee: '2' },
    'rate',
  ],
  ['/tenants', { slug: 'nova', domains: ['nova.example'] }, { domains: ['new.example'] }, 'tenant'],
  [
    '/dispatcher',
    { endpoint_name: 's', algorithm: 8, nodes: [{ host: '10.0.0.9' }] },
    { nodes: [{ host: '10.0.0.8' }] },
    'dispatcher_set',
  ],
  [
    '/telephony/ai-agents',
    { name: 'a', extension: '700', sip_uri: 'sip:ai@192.0.2.9' },
    { max_calls: 3 },
    'agent',
  ],
  ['/pbx/extensions', phone, { display_name: 'Two' }, 'extension'],
]

const changeOf = (answer: Answer): string | null => answer.headers.get('x-change-id')
/** Without the time of its last change, and the ids of nodes that were made anew. */
const lasting = ({ text }: Answer): string =>
  text.replaceAll(/"(?:updated_at":"[^"]*"|id":\d+)/g, '""')

test.each(resources)(
  'a row of %s is made, shown, changed and removed under one address; each step is entered, and undone exactly',
  async (path, body, change, kind) => {
    const rig = await openToolRig()
    const call = (method: string, at: string, sent?: object) =>
      rig.request(at, { token: rig.root, method, ...(sent && { body: sent }) })
    const undo = (id: string | null, more: object = {}) =>
      call('POST', `/api/v1/changes/${id ?? ''}/undo`, { reason: 'a mistake', ...more })
    const entry = async (id: string | null) =>
      (await call('GET', `/api/v1/changes/${id ?? ''}`)).data()
    const made = await call('POST', `/api/v1${path}?reason=a+new+office`, body)
    expect([made.status, made.text]).toEqual([201, made.text])
    const at = made.headers.get('location') ?? ''
    const target = { target_kind: kind, target_id: at.split('/').at(-1) }
    expect(at).toBe(`/api/v1${path}/${target.target_id}`)
    expect(await entry(changeOf(made))).toMatchObject({
      ...target,
      tool: `POST /api/v1${path}`,
      reason: 'a new office',
      state: 'made',
      before: null,
      is_reversible: true,
      effect: expect.stringMatching(/^The [A-Za-z ]+ ".+" is created\.$/),
    })
    const before = await call('GET', at)
    expect(before.body).toEqual(made.body)

    const same = await call('PATCH', at, {})
    expect([same.status, changeOf(same), lasting(same)]).toEqual([200, null, lasting(before)])
    const patched = await call('PATCH', at, change)
    expect([patched.status, (await call('GET', at)).body]).toEqual([200, patched.body])
    expect(lasting(patched)).not.toBe(lasting(before))
    expect(await entry(changeOf(patched))).toMatchObject({
      ...target,
      tool: `PATCH /api/v1${path}/:id`,
    })
    expect((await undo(changeOf(patched))).status).toBe(200)
    expect(lasting(await call('GET', at))).toBe(lasting(before))

    expect((await undo(changeOf(made), { dry_run: true })).data()).toMatchObject({ changed: true })
    expect((await call('GET', at)).status).toBe(200)
    const undone = await undo(changeOf(made))
    expect([undone.status, undone.text]).toEqual([
      200,
      expect.stringContaining('is removed: it was'),
    ])
    expect((await call('GET', at)).status).toBe(404)
    expect((await undo(changeOf(made))).data()).toMatchObject({ changed: false })

    // Nothing of it is in the way of the same again.
    const again = (await call('POST', `/api/v1${path}`, body)).headers.get('location') ?? ''
    const removed = await call('DELETE', again)
    expect(removed.status).toBe(200)
    expect((await undo(changeOf(removed))).code).toBe('not_reversible')
    expect((await call('GET', again)).status).toBe(404)
    expect((await call('DELETE', again)).status).toBe(404)
  },
)
