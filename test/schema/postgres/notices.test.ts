import { expect, onTestFinished, test } from 'vitest'
import { ServerNotices } from '../../../schema/postgres/notices.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/waiting.ts'

test.runIf(hasPostgres)(
  'what is told and asked at the same moment is sent one after the other, as the client wants it',
  async () => {
    const { url, drop } = await freshDatabase('empty')
    onTestFinished(drop)
    const warnings: string[] = []
    const note = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const schedule = () => () => undefined
    const notices = new ServerNotices({ url, schedule, log: () => undefined })
    onTestFinished(() => notices.stop())
    const heard: string[] = []
    await notices.start()
    notices.on('told', (payload) => heard.push(payload))
    const asked: Promise<unknown>[] = []
    for (let index = 0; index < 20; index += 1) {
      notices.notify('told', String(index))
      asked.push(notices.query(`SELECT ${index} AS number`, []))
    }
    const numbers = Array.from({ length: 20 }, (_, number) => number)
    expect(await Promise.all(asked)).toEqual(numbers.map((number) => [{ number }]))
    await eventually(() => expect(heard).toEqual(numbers.map(String)))
    expect(warnings).toEqual([])
  },
)
