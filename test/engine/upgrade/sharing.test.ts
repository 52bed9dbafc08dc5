/** What the old process of a planned upgrade leaves to the new one, and takes back when that fails. */
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { type UpgradeParts, upgradeOf } from '../../../engine/upgrade/sharing.ts'
import { plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

describe.runIf(hasPostgres)('a planned upgrade where nodes share wallets and limits', () => {
  let shared: SharedWallets
  afterEach(() => shared.close())

  /** The new process is one of the test: it has a share of a wallet and of a limit. */
  async function begun() {
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    const limits = { max_concurrent_calls: 2 }
    const terms = { name: '+15550001', rate_plan_id: planId, ...limits }
    const customerId = await shared.addCustomer(terms)
    const old = await shared.node('a')
    await topUp(old.ocs, customerId, 1_000_000)
    let end: (how: string) => void = () => undefined
    const place = { host: '127.0.0.1', port: 1 }
    const parts = {
      config: {
        drachtio: {},
        databasePath: '',
        sip: { listen: [] },
        apiListen: place,
        edgeListen: place,
      },
      engine: { passing: { sharing: { descriptors: () => [] } }, calls: { isDraining: false } },
      charging: old.ocs,
      limits: old.limits,
      control: { descriptors: () => [] },
      pid: 4711,
      log: () => undefined,
      schedule: () => () => undefined,
      startProgram: () => ({
        pid: 4712,
        send: () => undefined,
        onMessage: () => undefined,
        end: () => undefined,
        onEnd: (listener: (how: string) => void) => void (end = listener),
      }),
    }
    const outcome = upgradeOf(parts as unknown as UpgradeParts).run()
    const next = await shared.node('a', { beside: old })
    await next.ocs.authorize(question('its own', '1555'))
    await next.kill()
    return { old, next, outcome, end: (how: string) => end(how) }
  }
  const holders = async () => {
    const limits = shared.store.statements.prepare<{ process: string }>(
      "SELECT process FROM share WHERE kind = 'limit' AND amount > 0",
    )
    return {
      ofWallets: Object.keys(await shared.shares()),
      ofLimits: (await limits.all([])).length,
    }
  }

  test('what the new process holds of wallets is its own from its start on', async () => {
    const { next } = await begun()
    await later(50)
    expect((await holders()).ofWallets).toEqual([next.process])
  })

  test('when the new process has ended before it serves, its shares of wallets and limits are free', async () => {
    const { outcome, end } = await begun()
    expect(await holders()).toMatchObject({ ofWallets: [expect.anything()], ofLimits: 1 })
    end('was ended by SIGKILL')
    expect(await outcome).toMatchObject({ kind: 'refused' })
    await eventually(async () => expect(await holders()).toEqual({ ofWallets: [], ofLimits: 0 }))
  })
})
