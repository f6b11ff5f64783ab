// Only for this folder: `import … from 'millrace'` in an example ends here, at the package as `npm run build` made it.
// Your own project needs no such file; `npm install millrace` is enough.
export * from '../dist/index.js'
