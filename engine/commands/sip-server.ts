import { readFileSync } from 'node:fs'
import packageJson from '../../package.json' with { type: 'json' }
import { createLogger } from '../logger.ts'
import {
  CertificateError,
  ListenError,
  OptionError,
  programHelp,
  type ProgramWorld,
  runProgram,
} from '../sip-server/index.ts'
import { type Command, type CommandContext, WrongUsage } from './command.ts'
import { flushed } from './serve.ts'

/** The embedded SIP server without call control, for drachtio applications of any kind. */
export const sipServer: Command = {
  name: 'sip-server',
  summary: 'Serves the SIP server alone, for any drachtio application.',
  readsItsWords: true,
  details: programHelp,
  run: async ({ words }, context) => {
    try {
      await runProgram(words, programWorld(context))
      return 0
    } catch (error) {
      const isSetUpWrong =
        error instanceof OptionError ||
        error instanceof ListenError ||
        error instanceof CertificateError
      throw isSetUpWrong ? new WrongUsage(error.message) : error
    }
  },
}

function programWorld(context: CommandContext): ProgramWorld {
  const { environment, print, randomBytes, onStopSignal, onReloadSignal } = context
  return {
    environment,
    print,
    randomBytes,
    onStopSignal,
    onReloadSignal,
    version: packageJson.version,
    readFile: (path) => {
      try {
        return readFileSync(path, 'utf8')
      } catch {
        return undefined
      }
    },
    createLog: (level) => {
      const logger = createLogger(level)
      return { log: logger.log, flush: () => flushed(logger, context) }
    },
  }
}
