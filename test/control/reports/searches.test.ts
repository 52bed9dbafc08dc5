import { expect, test } from 'vitest'
import { inTurn } from '../../../control/reports/searches.ts'
import { openToolRig } from '../../support/tools-rig.ts'

test('one search works at a time, two of a tenant may wait, and a further one is refused at once', async () => {
  const rig = await openToolRig()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const order: string[] = []
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  const own = { store: rig.store, tenantId: 1 }
  const first = inTurn(own, async () => {
    await ended
    order.push('first')
  })
  const second = inTurn(own, async () => {
    order.push('second')
  })
  for (const [tool, given] of [
    ['find_anomalies', {}],
    ['get_telemetry', { start: new Date(rig.now() - 60_000).toISOString() }],
  ] as const) {
    const refused = await rig.tool(tool, given, acme)
    expect([tool, refused.status, refused.code]).toEqual([tool, 503, 'too_many_searches'])
  }
  // Those of others wait for their turn.
  const platform = rig.tool('find_anomalies')
  expect(order).toEqual([])
  end()
  await Promise.all([first, second])
  expect(order).toEqual(['first', 'second'])
  expect((await platform).status).toBe(200)
  expect((await rig.tool('find_anomalies', {}, acme)).status).toBe(200)
})

test('a search that fails does not hold up the next one', async () => {
  const { store } = await openToolRig()
  const own = { store, tenantId: 1 }
  const failed = inTurn(own, () => Promise.reject(new Error('the database is away')))
  await expect(failed).rejects.toThrow('away')
  expect(await inTurn(own, () => Promise.resolve('found'))).toBe('found')
})
