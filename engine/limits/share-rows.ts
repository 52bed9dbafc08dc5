/** Shares of limits in PostgreSQL. A share is set, never added to, so a request may be repeated. */
import type { NodeIdentity } from '../../schema/contracts/nodes.ts'
import type { Store } from '../../schema/open.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'

export interface ShareRequest {
  readonly resource: string
  readonly limit: number
  /** What is used here: as much is stored, whatever the limit. */
  readonly used: number
  /** What is wanted at least. */
  readonly base: number
  /** What is wanted beyond, out of a fair part of what is free. */
  readonly extra: number
}

export interface ShareAnswer {
  readonly resource: string
  readonly slots: number
  /** The shares of other processes. */
  readonly elsewhere: number
}

export class ShareRows {
  readonly #owner: readonly [node: string, process: string]
  readonly #statements: ReturnType<typeof prepare>
  #request = 0

  /** @param process a name that no other run of the node has had. */
  constructor(store: Pick<Store, 'statements'>, node: string, process: string) {
    this.#owner = [node, process]
    this.#statements = prepare(store)
  }

  /** @param nodes among so many what is free is divided. */
  async take(requests: readonly ShareRequest[], nodes: number): Promise<readonly ShareAnswer[]> {
    this.#request += 1
    const asked = requests.map(({ resource: name, limit: at_most, ...rest }) => ({
      name,
      at_most,
      ...rest,
    }))
    const values = [JSON.stringify(asked), ...this.#owner, this.#request, nodes]
    const rows = await this.#statements.take.all(values)
    return rows.map(({ of_resource: resource, granted: slots, elsewhere }) => ({
      resource,
      slots,
      elsewhere,
    }))
  }

  /** Frees what earlier processes of this node had, and another one that has ended. */
  async freeOthersOfNode(): Promise<void> {
    await this.#statements.freeOthers.run([...this.#owner])
  }

  /** This process ends: what is used stays, as the calls may go on. */
  async forgetUnused(): Promise<void> {
    await this.#statements.forget.run([...this.#owner])
  }

  /** Frees what a node had that is gone for good, unless it has been started again. */
  async release({ name, epoch }: NodeIdentity): Promise<void> {
    await this.#statements.release.run([name, epoch])
  }
}

interface Row {
  readonly of_resource: string
  readonly granted: number
  readonly elsewhere: number
}

function prepare({ statements }: Pick<Store, 'statements'>) {
  const statement = <R>(sql: string): PreparedStatement<R> => statements.prepare<R>(sql)
  return {
    take: statement<Row>('SELECT * FROM take_shares(CAST($1 AS json), $2, $3, $4, $5)'),
    freeOthers: statement('DELETE FROM limit_share WHERE node = $1 AND process <> $2'),
    forget: statement('DELETE FROM limit_share WHERE node = $1 AND process = $2 AND slots = 0'),
    release: statement(
      `DELETE FROM limit_share WHERE node = $1
         AND EXISTS (SELECT 1 FROM node WHERE name = $1 AND epoch = $2 AND state = 'stopped')`,
    ),
  }
}
