import { expect, test } from 'vitest'
import { openToolRig } from '../../../support/tools-rig.ts'

type Failure = { route: string; code: string; key: string | null; requests: number }
type Period = {
  calls: object
  api_requests: { total: number; failed: number }
  api_failures: Failure[]
}

async function opened() {
  const rig = await openToolRig()
  const acme = await rig.key({ name: 'of acme', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const ask = (path: string, token?: string) =>
    rig.request(`/api/v1${path}`, token === undefined ? {} : { token })
  const periodOf = async (given: object, token = rig.root) => {
    await rig.access.tick()
    const answer = await rig.tool('get_telemetry', given, token)
    return answer.data<{ period?: Period }>().period
  }
  return { ...rig, acme, ask, periodOf }
}

test('a period has its calls by denial, and what failed of the API by route and key', async () => {
  const rig = await opened()
  await rig.ask('/customers/99', rig.root)
  await rig.ask('/customers/98', rig.root)
  await rig.ask('/users')
  await rig.ask('/metrics/history', rig.acme)
  const period = await rig.periodOf({ start: '2025-12-31' })
  expect(period).toMatchObject({
    calls: { total: 2, answered: 1, failed: 0, refused: { insufficient_funds: 1 } },
    api_failures: [
      { route: 'GET /api/v1/customers/:id', code: 'not_found', requests: 2 },
      expect.anything(),
      expect.anything(),
    ],
  })
  expect(period?.api_failures).toContainEqual(
    expect.objectContaining({ route: 'GET /api/v1/users', code: 'unauthorized', key: null }),
  )
  expect(period?.api_requests.failed).toBe(3)
  expect(period).toMatchObject({ api_failures_total: 3, complete: true })
  const short = await rig.periodOf({ start: '2025-12-31', limit: 1 })
  expect(short?.api_failures).toEqual(period?.api_failures.slice(0, 1))
  expect(short).toMatchObject({ api_failures_total: 3, complete: false })
  expect(await rig.periodOf({})).toBeUndefined()
  const before = await rig.periodOf({ start: '2025-12-01', end: '2025-12-02' })
  expect(before).toMatchObject({ calls: { total: 0 }, api_failures: [], complete: true })
})
