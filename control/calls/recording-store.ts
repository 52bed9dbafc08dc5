/** Finished recordings: found by the uuid of their call, removed with their file. */
import { access, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Selectable } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import { recordingFile } from '../../schema/rules/media.ts'
import type { RecordingTable } from '../../schema/tables/calls.ts'

export type Recording = Selectable<RecordingTable>

export class RecordingStore {
  readonly #store: Store
  readonly #folder: string

  constructor(store: Store, folder: string) {
    this.#store = store
    this.#folder = folder
  }

  find(callUuid: string): Promise<Recording | undefined> {
    const query = this.#store.db
      .selectFrom('recording')
      .selectAll()
      .where('call_uuid', '=', callUuid)
    return first(this.#store, query)
  }

  /** Recordings that began before `time`, the oldest first, starting after `last`. */
  olderThan(time: number, count: number, last?: Recording): Promise<readonly Recording[]> {
    const query = this.#store.db
      .selectFrom('recording')
      .selectAll()
      .where('started_at', '<', time)
      .where((row) =>
        row.or([
          row('started_at', '>', last?.started_at ?? -1),
          row.and([
            row('started_at', '=', last?.started_at ?? -1),
            row('call_uuid', '>', last?.call_uuid ?? ''),
          ]),
        ]),
      )
      .orderBy('started_at')
      .orderBy('call_uuid')
      .limit(count)
    return all(this.#store, query)
  }

  /** Undefined: no file can have this name. */
  pathOf({ call_uuid: uuid }: Pick<Recording, 'call_uuid'>): string | undefined {
    const name = recordingFile(uuid)
    return name && join(this.#folder, name)
  }

  /** Whether the disk of this instance has its file. */
  async isHere(recording: Pick<Recording, 'call_uuid'>): Promise<boolean> {
    const path = this.pathOf(recording)
    if (path === undefined) return false
    return access(path).then(
      () => true,
      () => false,
    )
  }

  /** The file first: a crash in between leaves a row, which may be removed again. */
  async remove(recording: Pick<Recording, 'call_uuid'>): Promise<void> {
    const path = this.pathOf(recording)
    if (path !== undefined) await rm(path, { force: true })
    const query = this.#store.db
      .deleteFrom('recording')
      .where('call_uuid', '=', recording.call_uuid)
    await execute(this.#store, query)
  }
}
