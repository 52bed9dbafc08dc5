/** What the old process of a planned upgrade leaves to the new one, and takes back when that fails. */
import { afterEach, describe, expect, test } from 'vitest'
import { type UpgradeParts, upgradeOf } from '../../../engine/upgrade/sharing.ts'
import { plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

describe.runIf(hasPostgres)('a planned upgrade where nodes share wallets and limits', () => {
  let shared: SharedWallets
  afterEach(() => shared.close())

  /** The new process is one of the test: it leases, and has a share of a limit. */
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
    return { old, outcome, end: (how: string) => end(how) }
  }
  const holders = async () => {
    const leases = shared.store.statements.prepare<{ node: string }>(
      'SELECT node FROM wallet_lease WHERE amount_micros > 0',
    )
    const shares = shared.store.statements.prepare<{ process: string }>(
      'SELECT process FROM limit_share WHERE slots > 0',
    )
    return {
      leases: (await leases.all([])).map(({ node }) => node),
      shares: (await shares.all([])).length,
    }
  }

  test('what the new process has leased is its own from its start on', async () => {
    const { old } = await begun()
    await old.ocs.leases?.takeOther()
    expect((await holders()).leases).toEqual(['a/2'])
  })

  test('when the new process has ended before it serves, what it has leased and its shares of limits are free', async () => {
    const { old, outcome, end } = await begun()
    expect((await holders()).shares).toBe(1)
    end('was ended by SIGKILL')
    expect(await outcome).toMatchObject({ kind: 'refused' })
    await old.ocs.leases?.takeOther()
    await eventually(async () => expect(await holders()).toEqual({ leases: ['a'], shares: 0 }))
  })
})
