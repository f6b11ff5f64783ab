// Only for this folder, as millrace.js is: `import … from 'millrace/reactive'` in an example resolves to this file.
export * from '../dist/reactive/index.js'
