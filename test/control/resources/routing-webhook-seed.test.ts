import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SeedRefused } from '../../../control/resources/seed.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { loadRoutingWebhooks } from '../../../engine/hooks/webhook/routing-webhook-store.ts'
import { provision } from '../../support/commands-here.ts'
import { emptyStore } from '../../support/empty-store.ts'
import { secret } from '../../support/routing-receiver.ts'

const now = 1_767_225_600_000

const seed = (webhook: object) =>
  JSON.stringify({
    carriers: [{ name: 'transit', gateways: [{ host: '198.51.100.7' }] }],
    routing_webhooks: [{ url: 'https://crm.example/route', carrier: 'transit', ...webhook }],
  })

test('a seed file brings a routing webhook with its secret, and finds it again by its scope', async () => {
  const store = emptyStore()
  await seedFile(store, seed({ secret }), now)
  const again = await seedFile(store, seed({ secret, timeout_ms: 300 }), now)
  expect(again.routing_webhooks).toEqual({ created: 0, updated: 1, unchanged: 0 })
  expect((await seedFile(store, seed({ secret, timeout_ms: 300 }), now)).routing_webhooks).toEqual({
    created: 0,
    updated: 0,
    unchanged: 1,
  })
  const problems: string[] = []
  const records = await loadRoutingWebhooks(store, (problem) => problems.push(problem))
  expect(problems).toEqual([])
  expect(records).toMatchObject([
    { id: 1, carrierId: 1, setId: null, timeoutMs: 300, secret, cacheKey: ['from', 'to'] },
  ])
})

test('a seed file names the secret: nothing would show a new one', async () => {
  const store = emptyStore()
  await expect(seedFile(store, seed({}), now)).rejects.toThrow(SeedRefused)
  await expect(seedFile(store, seed({}), now)).rejects.toThrow('secret')
})

test('a webhook whose secret cannot be read is told, and is not asked', async () => {
  const store = emptyStore()
  await seedFile(store, seed({ secret }), now)
  store.sqlite.exec("UPDATE routing_webhook SET secret = substr(secret, 1, 20) || 'AAAA'")
  const problems: string[] = []
  expect(await loadRoutingWebhooks(store, (problem) => problems.push(problem))).toEqual([])
  expect(problems).toEqual(['the secret of routing webhook 1 cannot be read; rotate it'])
})

test('the command takes an inward address where WEBHOOK_PRIVATE_TARGETS allows it, as the API does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'seed-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'seed.json')
  writeFileSync(file, seed({ secret, url: 'http://127.0.0.1:8080/' }))
  const seedWith = (name: string, more: Record<string, string> = {}) =>
    provision({ DATABASE_PATH: join(folder, name), ...more }, file)
  await expect(seedWith('closed.db')).rejects.toThrow('private')
  await seedWith('open.db', { WEBHOOK_PRIVATE_TARGETS: 'allow' })
})
