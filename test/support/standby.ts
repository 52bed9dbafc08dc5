/**
 * A second PostgreSQL server that follows another one asynchronously, and takes over when the test
 * says so.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { endWith } from '../../engine/commands/demo/temporary-postgres.ts'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { unprivileged } from './postgres.ts'
import { eventually } from './waiting.ts'

export class Standby {
  readonly folder: string
  readonly #statements: PostgresStatements

  /** @param primary the folder of its socket. */
  static async follow(programs: string, primary: string, folder: string): Promise<Standby> {
    const user = unprivileged()
    mkdirSync(folder, { mode: 0o700 })
    if (user !== undefined) chownSync(folder, user.uid, user.gid)
    const data = join(folder, 'data')
    const copy = ['-h', primary, '-U', 'tollgate', '-D', data, '-R', '-X', 'stream', '-c', 'fast']
    const how = { ...user, cwd: folder, encoding: 'utf8' } as const
    const copied = spawnSync(join(programs, 'pg_basebackup'), copy, how)
    expect(copied.stderr).toBe('')
    const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off']
    const words = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]
    const options = { ...user, cwd: folder, detached: true, stdio: 'ignore' } as const
    const server = spawn(join(programs, 'postgres'), words, options)
    if (server.pid !== undefined) endWith(process.pid, server.pid, 'INT')
    const standby = new Standby(folder, () => void server.kill('SIGINT'))
    await eventually(() => standby.#ask('SELECT 1 AS answer'))
    return standby
  }

  readonly #kill: () => void

  private constructor(folder: string, kill: () => void) {
    this.folder = folder
    this.#kill = kill
    const url = `postgres://tollgate@localhost/postgres?host=${encodeURIComponent(folder)}`
    this.#statements = new PostgresStatements({ url, connections: 1 })
  }

  /** From now on no commit of the primary arrives. */
  async lag(): Promise<void> {
    await this.#statements.execute("ALTER SYSTEM SET primary_conninfo = ''")
    await this.#statements.execute('SELECT pg_reload_conf()')
    await eventually(async () =>
      expect(await this.#ask('SELECT count(*) AS answer FROM pg_stat_wal_receiver')).toBe(0),
    )
  }

  async promote(): Promise<void> {
    expect(await this.#ask('SELECT pg_promote() AS answer')).toBe(1)
  }

  async stop(): Promise<void> {
    await this.#statements.close()
    this.#kill()
  }

  async #ask(sql: string): Promise<unknown> {
    return (await this.#statements.prepare<{ readonly answer: unknown }>(sql).get([]))?.answer
  }
}
