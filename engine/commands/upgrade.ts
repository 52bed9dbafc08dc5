import { readConfig } from '../config.ts'
import { isServed } from '../serving-lock.ts'
import { requestUpgrade } from '../upgrade/request-socket.ts'
import { type Command, WrongUsage } from './command.ts'

export const upgrade: Command = {
  name: 'upgrade',
  summary: 'Has the serving process hand over to the program that is on disk now, without a gap.',
  details: () =>
    [
      'The new process has the settings of the running one, and the .env of its folder as it is now.',
      'If it does not serve within 30 s, or refuses, the running process goes on as before: exit code 1.',
      'SIGUSR2 to the running process does the same. So that it can be reached, there is a folder',
      '<DATABASE_PATH>.upgrade.',
    ].join('\n'),
  run: async (_input, { environment, print, complain }) => {
    const { databasePath } = readConfig(environment)
    if (!isServed(databasePath)) throw new WrongUsage(`no process serves ${databasePath}`)
    const outcome = await requestUpgrade(databasePath)
    if (outcome.kind === 'refused') {
      complain(`tollgate: not upgraded: ${outcome.reason}`)
      return 1
    }
    print(`upgraded: process ${outcome.pid} serves now, version ${outcome.version}`)
    return 0
  },
}
