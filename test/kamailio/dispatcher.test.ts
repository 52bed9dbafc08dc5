/** Kamailio's dispatcher before two instances on one database, set up by kamailio.cfg. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { paying, poor, seedFor } from '../sipp/call-case.ts'
import { freePort } from '../support/free-port.ts'
import { Kamailio } from '../support/kamailio.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }

interface Places {
  readonly port: number
  /** The port from which the calls of the carrier are sent. */
  readonly carrierPort: number
  readonly folder: string
  readonly instances: readonly TollgateProcess[]
}

/** The configuration with the places of this test. */
function configurationFor({ port, carrierPort, folder, instances }: Places): string {
  const file = readFileSync('test/kamailio/kamailio.cfg', 'utf8')
  const list = join(folder, 'dispatcher.list')
  writeFileSync(list, instances.map(({ sipPort }) => `1 sip:127.0.0.1:${sipPort}\n`).join(''))
  const addresses = join(folder, 'address.list')
  writeFileSync(addresses, '1 127.0.0.1\n')
  const settings = 'debug=1\nlog_stderror=yes\nchildren=1\nauto_aliases=no\nloadmodule "xlog.so"'
  return (
    file
      .replace('10.0.0.5:5060', `127.0.0.1:${port}`)
      .replaceAll('10.0.0.5:5061', `127.0.0.1:${carrierPort}`)
      .replace('/etc/kamailio/dispatcher.list', list)
      .replace('/etc/kamailio/address.list', addresses)
      .replace('\nloadmodule', `\n${settings}\nloadmodule`)
      // An instance that stands still for a moment is not one that was killed.
      .replace('"fr_timer", 2000', '"fr_timer", 6000')
  )
}

describe.runIf(hasPostgres)('the dispatcher', () => {
  test('calls of known addresses take turns over the instances, and the carrier pays; none fails after one is killed', async () => {
    const { url, drop } = await freshDatabase()
    onTestFinished(drop)
    const database = new PostgresStatements({ url, connections: 1 })
    onTestFinished(() => database.close())
    const pbx = await SippNode.start('nodes/answers.xml')
    onTestFinished(async () => void (await pbx.stop()))
    const environment = {
      ...patientInstances,
      DATABASE_URL: url,
      SECRET_KEY: 'A'.repeat(43),
      TRUSTED_SOURCES: '192.0.2.0/24',
    }
    const carrierPort = await freePort()
    const front = {
      name: 'front',
      direction: 'in',
      customer: 'paying',
      gateways: [{ host: '127.0.0.1', port: carrierPort }],
    }
    const start = async (name: string): Promise<TollgateProcess> => {
      const settings = { ...environment, NODE_NAME: name }
      const tollgate = await TollgateProcess.start(
        // More than the instances lease: none waits for what the other one has.
        { ...seedFor([pbx.port], { balance: '1000.00' }), carriers: [front] },
        settings,
      )
      onTestFinished(() => tollgate.stop())
      return tollgate
    }
    const instances = [await start('sbc-1'), await start('sbc-2')]
    const kamailio = await Kamailio.start({
      configuration: (port, folder) => configurationFor({ port, carrierPort, folder, instances }),
    })
    onTestFinished(() => kamailio.stop())
    const call = (calls: number) =>
      callWith('inbound/answered.xml', kamailio.port, { keys: { caller: poor }, calls, rate: 5 })
    const answered = async (): Promise<number> => {
      const count = "SELECT count(*)::float8 AS n FROM cdr WHERE disposition = 'ANSWERED'"
      return (await database.prepare<{ n: number }>(count).get([]))?.n ?? 0
    }
    const token = await instances[0]?.createKey('--name', 'metrics', '--scopes', '*')
    const began = async (tollgate: TollgateProcess): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/metrics`, {
        headers: { Authorization: `Bearer ${token}` },
      })
      const [, ended] =
        /^tollgate_calls_total\{disposition="ANSWERED"\} (\d+)$/m.exec(await response.text()) ?? []
      return Number(ended)
    }

    const stranger = { keys: { caller: paying }, extra: ['-i', '127.0.0.2'] }
    expect(await callWith('inbound/unknown-source.xml', kamailio.port, stranger)).toEqual(clean)
    expect(await call(10)).toEqual(clean)
    await eventually(async () => expect(await answered()).toBe(10))
    expect(instances[0]?.wallet('paying').debits).toBe(10)
    await eventually(async () => expect(await Promise.all(instances.map(began))).toEqual([5, 5]))
    await instances[0]?.kill()
    expect(await call(10)).toEqual(clean)
    await eventually(async () => expect(await answered()).toBe(20))
    expect(instances[1]?.faults).toEqual([])
  })
})
