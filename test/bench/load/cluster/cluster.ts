/** Instances, each on a machine of its own, and the PostgreSQL server that they share. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgresStatements } from '../../../../schema/sql/postgres-statements.ts'
import { provision } from '../../../support/commands-here.ts'
import { ClusterInstance } from './cluster-node.ts'
import { DatabaseServer } from './database-server.ts'
import { type Machine, Network, whyNoNetwork } from './network.ts'

interface ClusterOptions {
  readonly instances: number
  /** The seed file for the machine of callers and callees, which may name any payer. */
  readonly seedFor: (load: Machine) => object
  /** Where logs are kept; unless given, they go with the cluster. */
  readonly logFolder?: string
}

export interface Cluster {
  readonly network: Network
  readonly database: DatabaseServer
  readonly databaseMachine: Machine
  /** Where calls come from and go to. */
  readonly load: Machine
  readonly instances: readonly ClusterInstance[]
  /** Statements of this process, which no cut link concerns. */
  readonly statements: PostgresStatements
  /** Starts the instances: what they look for at their start is there already. */
  serve(): Promise<void>
  close(): Promise<void>
}

/** Why no cluster can be started here. */
export const whyNoCluster = (): string | undefined => whyNoNetwork() ?? DatabaseServer.whyNot()

const SECRET_KEY = 'A'.repeat(43)

export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-cluster-'))
  // The server's user goes through it.
  chmodSync(folder, 0o755)
  const names = Array.from({ length: options.instances }, (_, index) => `node-${index + 1}`)
  const network = Network.open(['load', 'database', ...names], folder)
  const [load, databaseMachine] = [network.machine('load'), network.machine('database')]
  const close = async (): Promise<void> => {
    network.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const database = await DatabaseServer.start(databaseMachine, folder)
    const shared = { SECRET_KEY, DRAIN_SECONDS: '1' }
    const file = join(folder, 'seed.json')
    writeFileSync(file, JSON.stringify(options.seedFor(load)))
    const here = { ...shared, DATABASE_URL: database.localUrl, DATABASE_PATH: join(folder, 'here') }
    await provision(here, file)
    const logFolder = options.logFolder ?? folder
    mkdirSync(logFolder, { recursive: true })
    const environment = {
      ...shared,
      DATABASE_URL: database.url,
      TRUSTED_SOURCES: `127.0.0.0/8,::1/128,${load.address}/32`,
    }
    const instances = names.map(
      (name) =>
        new ClusterInstance(network.machine(name), environment, { parent: folder, logFolder }),
    )
    const statements = new PostgresStatements({ url: database.localUrl, connections: 2 })
    return {
      network,
      database,
      databaseMachine,
      load,
      instances,
      statements,
      serve: async () => {
        await Promise.all(instances.map((instance) => instance.start()))
      },
      close: async () => {
        await Promise.all(instances.map((instance) => instance.stop()))
        await statements.close()
        await database.stop('fast')
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}
